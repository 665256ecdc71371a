import { mount } from "svelte";
import { rememberedAppearance, showAppearance } from "./lib/appearance.ts";
import { byId } from "./lib/dom.ts";
import PromptWindow from "./prompt/PromptWindow.svelte";
import "./styles/tokens.css";
import "./styles/base.css";

showAppearance(rememberedAppearance());
mount(PromptWindow, { target: byId("app") });
