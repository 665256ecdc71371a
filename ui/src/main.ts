import { mount } from "svelte";
import App from "./App.svelte";
import { rememberedAppearance, showAppearance } from "./lib/appearance.ts";
import { byId } from "./lib/dom.ts";
import "./styles/tokens.css";
import "./styles/base.css";

showAppearance(rememberedAppearance());
mount(App, { target: byId("app") });
