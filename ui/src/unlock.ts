import { mount } from "svelte";
import { rememberedAppearance, showAppearance } from "./lib/appearance.ts";
import { byId } from "./lib/dom.ts";
import UnlockWindow from "./unlock/UnlockWindow.svelte";
import "./styles/tokens.css";
import "./styles/base.css";

showAppearance(rememberedAppearance());
mount(UnlockWindow, { target: byId("app") });
