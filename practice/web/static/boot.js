// Before the first paint: the remembered language and colours, so that nothing flashes.
// A classic script on purpose: a module would run after the page was painted.
{
  const remembered = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage is off: the browser's own settings decide
    }
  };
  const root = document.documentElement;
  const language = remembered("judge.language") ?? (navigator.language || "en");
  root.lang = language.startsWith("zh") ? "zh-CN" : "en";
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const theme = remembered("judge.theme");
  root.dataset.theme = theme === "light" || theme === "dark" ? theme : system;
}
