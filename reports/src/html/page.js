// The page: time lines that are drawn when they are first seen, keys.

const drawn = new Map();
let current = null;

function isFolded(root) {
  return root.closest("details:not([open])") !== null;
}

// Draws the time lines that are not in a closed part of the page.
function drawVisible(within) {
  for (const root of within.querySelectorAll(".timeline")) {
    if (drawn.has(root) || isFolded(root)) continue;
    drawn.set(root, new Timeline(root));
    root.addEventListener("pointerdown", () => (current = root));
    root.addEventListener("focusin", () => (current = root));
  }
}

// The time line that gets the keys: the last one that was used, or the first one that can be seen.
function active() {
  const visible = [...drawn.keys()].filter((root) => !isFolded(root));
  return drawn.get(visible.includes(current) ? current : visible[0]);
}

const KEYS = {
  "n": "next", "p": "previous", "+": "in", "=": "in", "-": "out", "0": "witness", "a": "all",
  "ArrowLeft": "left", "ArrowRight": "right", "Escape": "none",
};

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest("input[type=search], textarea, select");
  if (writes || event.ctrlKey || event.altKey || event.metaKey || !KEYS[event.key]) return;
  const timeline = active();
  if (!timeline) return;
  event.preventDefault();
  timeline.act(KEYS[event.key]);
});

document.addEventListener("toggle", (event) => {
  if (event.target.open) drawVisible(event.target);
}, true);

// A printed page has everything but the plans.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open]):not(.plan)")];
  for (const details of opened) details.open = true;
  drawVisible(document);
});
addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));

drawVisible(document);
