// Our own icons: lines on a 24 by 24 grid, each a list of paths. Circles are paths too, so that there is one element to draw.
const circle = (x: number, y: number, r: number) =>
  `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;

export const icons = {
  home: ["M4 11 12 4.5 20 11", "M6 9.5V19h12V9.5", "M10 19v-5h4v5"],
  activity: ["M8 6.5h12M8 12h12M8 17.5h12", "M4 6.5h.01M4 12h.01M4 17.5h.01"],
  folders: ["M3.5 18V6.5a1 1 0 0 1 1-1h4.6l2 2.5h8.4a1 1 0 0 1 1 1V18a1 1 0 0 1-1 1h-15a1 1 0 0 1-1-1Z"],
  settings: ["M4 7h9M17 7h3M4 12h3M11 12h9M4 17h7M15 17h5", circle(15, 7, 2), circle(9, 12, 2), circle(13, 17, 2)],

  off: [circle(12, 12, 8.5), "M6 18 18 6"],
  connected: [circle(12, 12, 8.5), "m8.2 12.3 2.6 2.6 5-5.4"],
  working: [circle(12, 12, 8.5), "M8 12h.01M12 12h.01M16 12h.01"],
  in_control: ["M6 3.5 18.5 11l-5.7 1.4L10 18.5Z", "m13.2 13.2 4.3 5.3"],
  recording: [circle(12, 12, 8.5), circle(12, 12, 3), circle(12, 12, 1.5)],
  paused: [circle(12, 12, 8.5), "M10 9v6M14 9v6"],
  trouble: ["M12 4 21 19.5H3Z", "M12 10v4.2M12 16.9h.01"],

  stop: ["M8.2 3.5h7.6l4.7 4.7v7.6l-4.7 4.7H8.2l-4.7-4.7V8.2Z", "M9 9h6v6H9Z"],
  pause: ["M9 6v12M15 6v12"],
  play: ["M8 5.5 18.5 12 8 18.5Z"],
  plug: ["M9 3.5V8M15 3.5V8M6.5 8h11v3.5a5.5 5.5 0 0 1-11 0Z", "M12 17v3.5"],
  unplug: ["M12 3.5v8", "M7.2 6.6a7.4 7.4 0 1 0 9.6 0"],
  windows: ["M3.5 5.5h17v13h-17Z", "M3.5 9.5h17"],
  apps: ["M4.5 4.5h6v6h-6ZM13.5 4.5h6v6h-6ZM4.5 13.5h6v6h-6ZM13.5 13.5h6v6h-6Z"],
  chip: ["M7 7h10v10H7Z", "M10 4v3M14 4v3M10 17v3M14 17v3M4 10h3M4 14h3M17 10h3M17 14h3"],
  trash: ["M5 7h14M9.5 7V4.5h5V7M7 7l.8 12.5h8.4L17 7", "M10.3 10.5v5.5M13.7 10.5v5.5"],
  user: [circle(12, 8.5, 3.8), "M4.8 19.5c1-3.4 3.8-5 7.2-5s6.2 1.6 7.2 5"],
  computer: ["M4 5h16v10.5H4Z", "M9 19.5h6M12 15.5v4"],
  globe: [circle(12, 12, 8.5), "M3.5 12h17M12 3.5c5 5.3 5 11.7 0 17M12 3.5c-5 5.3-5 11.7 0 17"],
  chat: ["M4 5.5h16v10.5h-8.5L7 19.8V16H4Z"],
  bell: ["M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15Z", "M10.2 20.5h3.6"],
  info: [circle(12, 12, 8.5), "M12 11v5M12 8h.01"],
  check: ["m5 12.5 4.5 4.5L19 7.5"],
  close: ["m6 6 12 12M18 6 6 18"],
  plus: ["M12 5v14M5 12h14"],
  up: ["m6 14.5 6-6 6 6"],
  down: ["m6 9.5 6 6 6-6"],
  search: [circle(10.8, 10.8, 6.3), "m15.5 15.5 4.5 4.5"],
  shield: ["M12 3.5 19 6v5.5c0 4.2-2.8 7.3-7 9-4.2-1.7-7-4.8-7-9V6Z", "m9 12 2.2 2.2L15.2 10"],
  export: ["M12 14.5V4M8 7.8 12 4l4 3.8", "M5 13.5v6h14v-6"],
  keyboard: ["M3.5 6.5h17v11h-17Z", "M7 10h.01M10.3 10h.01M13.6 10h.01M17 10h.01M8.5 14h7"],
  sun: [circle(12, 12, 3.8), "M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4"],
  copy: ["M8.5 8.5h11v11h-11Z", "M15.5 8.5v-4h-11v11h4"],

  read: ["M6.5 3.5h7.5l4 4v13h-11.5Z", "M9.5 12h5M9.5 15.5h5"],
  write: ["m5 19 1-4L16.5 4.5l3 3L9 18Z", "M14 7l3 3"],
  shell: ["M3.5 5h17v14h-17Z", "m7.5 9.5 3 2.7-3 2.7M12.5 15.5h4"],
  screen: ["M3.5 12S6.5 6 12 6s8.5 6 8.5 6-3 6-8.5 6-8.5-6-8.5-6Z", circle(12, 12, 2.6)],
  input: ["M6 3.5 18.5 11l-5.7 1.4L10 18.5Z", "m13.2 13.2 4.3 5.3"],
  clipboard: ["M6 5.5h12v15H6Z", "M9.5 3.5h5v3.5h-5Z", "M9 12h6M9 15.5h6"],
  record: [circle(12, 12, 8.5), circle(12, 12, 3), circle(12, 12, 1.5)],
  connection: ["M9 3.5V8M15 3.5V8M6.5 8h11v3.5a5.5 5.5 0 0 1-11 0Z", "M12 17v3.5"],
  other: [circle(12, 12, 8.5), "M8 12h.01M12 12h.01M16 12h.01"],
} satisfies Record<string, string[]>;

export type IconName = keyof typeof icons;
