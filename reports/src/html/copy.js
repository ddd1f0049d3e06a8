// Buttons that copy the text beside them.

async function copy(button) {
  const text = (button.parentElement.querySelector("code, pre") ?? button).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Some browsers do not let a page of a file use the clipboard: the text is selected, to be copied by hand.
    getSelection().selectAllChildren(button.parentElement.querySelector("code, pre"));
    button.textContent = "Selected";
    return;
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

document.addEventListener("click", (event) => {
  if (event.target.matches("button.copy")) copy(event.target);
});
