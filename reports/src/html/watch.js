// The page of a sweep that goes on: it asks for itself again, and takes over what has changed. Nothing is asked
// for while the page is hidden or paused, and after the end of the sweep.

const EVERY = 1000;
const WITHOUT_ANSWER = 5000;

const asked = document.getElementById("asked");
const pause = document.getElementById("pause");
let isPaused = false;
let isAsking = false;
let answered = new Date();
let timer;

// Makes a part of the page like a new one. What has not changed is left alone, and so are the focus, what is
// selected, how far it is scrolled, and which details are open.
function become(old, fresh) {
  if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  const isKept = (name) => old.nodeName === "DETAILS" && name === "open";
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !isKept(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !isKept(name)) old.setAttribute(name, value);
  }
  const children = [...fresh.childNodes];
  const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  children.forEach((child, at) => {
    const place = old.childNodes[at];
    const same = named.get(child.id);
    if (same && same !== place) old.insertBefore(same, place ?? null);
    const current = same ?? place;
    if (!current) old.append(child);
    else if (!same && (child.id || current.id)) current.before(child);
    else become(current, child);
  });
  while (old.childNodes.length > children.length) old.lastChild.remove();
}

function hasEnded() {
  return document.getElementById("watch").dataset.stage === "ended";
}

function say() {
  const time = answered.toLocaleTimeString();
  asked.textContent = hasEnded() ? "The sweep has ended." : isPaused ? `Paused at ${time}.` : `As of ${time}.`;
  pause.hidden = hasEnded();
}

async function ask() {
  clearTimeout(timer);
  if (isAsking || isPaused || document.hidden || hasEnded()) return;
  isAsking = true;
  let next = EVERY;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    answered = new Date();
    document.title = page.title;
    become(document.getElementById("watch"), page.getElementById("watch"));
    say();
  } catch {
    asked.textContent = `No answer: the command has ended. This is what it said at ${answered.toLocaleTimeString()}.`;
    next = WITHOUT_ANSWER;
  }
  isAsking = false;
  if (!isPaused && !document.hidden && !hasEnded()) timer = setTimeout(ask, next);
}

pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", isPaused);
  say();
  ask();
});
document.addEventListener("visibilitychange", ask);

// A page that was saved as a file has nobody to ask.
if (location.protocol === "http:") {
  say();
  timer = setTimeout(ask, EVERY);
}
