// Starts the program once the plain HTML is painted. Without frames, as in a hidden tab, at once.
(() => {
  const start = () => {
    const text = document.getElementById('pgdyno-program');
    // The element is complete once something follows it.
    if (!text?.nextSibling && document.readyState === 'loading') {
      setTimeout(start);
      return;
    }
    const program = document.createElement('script');
    program.type = 'module';
    program.textContent = text.textContent;
    // Not in the body: what stands behind an element there tells that the element is complete.
    document.head.append(program);
  };
  if (document.hidden) {
    start();
  } else {
    requestAnimationFrame(() => setTimeout(start));
  }
})();
