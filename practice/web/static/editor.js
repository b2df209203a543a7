// CodeMirror for the reader's code, and for files to look at.
//
// The editor lives in a shadow root: there CodeMirror adopts constructed style sheets, which the
// policy `style-src 'self'` allows, while in the document it would add a <style> element, which
// that policy refuses. Custom properties reach into a shadow root, so the colours of base.css do.
import { language, onLanguage, pick } from "./language.js";
import { CHINESE, COLOURS, LOOK } from "./look.js";
import { functionMarks, placesOf } from "./marks.js";
import * as cm from "./vendor/cm6.mjs";

const { EditorView, EditorState } = cm;

/** An editor below `host`; `symbols` are the functions to mark, `onChange(text)` hears of edits. */
export function makeEditor(host, { text, label, symbols = [], onChange = null }) {
  const words = new cm.Compartment();
  const editable = onChange !== null;
  const extensions = [
    cm.lineNumbers(),
    cm.highlightSpecialChars(),
    cm.drawSelection(),
    cm.python(),
    cm.indentUnit.of("    "),
    EditorState.tabSize.of(4),
    cm.bracketMatching(),
    cm.search(),
    cm.highlightSelectionMatches(),
    cm.syntaxHighlighting(COLOURS),
    LOOK,
    symbols.length ? functionMarks(symbols) : [],
    words.of(wordsOf(label)),
    editable ? editing(onChange) : reading(),
  ];
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.replaceChildren();
  const state = EditorState.create({ doc: text, extensions });
  const view = new EditorView({ state, parent: root, root });
  const forget = onLanguage(() => {
    if (host.isConnected) view.dispatch({ effects: words.reconfigure(wordsOf(label)) });
    else forget(); // another file is looked at now
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (next) => replace(view, next),
    goTo: (line) => goTo(view, line),
    jump: (symbol) => jump(view, symbols, symbol),
    showFirst: () => showFirst(view, symbols),
    focus: () => view.focus(),
  };
}

function editing(onChange) {
  return [
    cm.history(),
    cm.indentOnInput(),
    cm.closeBrackets(),
    cm.highlightActiveLine(),
    cm.highlightActiveLineGutter(),
    // Tab indents; after Esc, CodeMirror lets the next Tab leave the editor.
    cm.keymap.of([
      ...cm.closeBracketsKeymap,
      ...cm.defaultKeymap,
      ...cm.historyKeymap,
      ...cm.searchKeymap,
      cm.indentWithTab,
    ]),
    EditorView.domEventHandlers({ beforeinput: typedOverSelection }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onChange(update.state.doc.toString());
    }),
  ];
}

// Left alone, Chromium keeps the look of the text that is typed over in a style attribute, which
// the policy refuses with an error in the console: so the text goes in as a change of the state.
function typedOverSelection(event, view) {
  const { main, ranges } = view.state.selection;
  const typed = event.inputType === "insertText" && event.data;
  if (!typed || main.empty || ranges.length > 1 || view.composing) return false;
  const insert = () =>
    view.state.update(view.state.replaceSelection(event.data), {
      userEvent: "input.type",
      scrollIntoView: true,
    });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, main.from, main.to, event.data, insert)))
    view.dispatch(insert());
  return true;
}

function reading() {
  return [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({ tabindex: "0" }),
    cm.keymap.of([...cm.searchKeymap, ...cm.defaultKeymap]),
  ];
}

function wordsOf(label) {
  return [
    EditorView.contentAttributes.of({ "aria-label": pick(label) }),
    language() === "zh" ? EditorState.phrases.of(CHINESE) : [],
  ];
}

function replace(view, next) {
  if (next === view.state.doc.toString()) return;
  const alone = cm.isolateHistory.of("full"); // one undo takes back this and nothing before it
  view.dispatch({
    changes: { from: 0, to: view.state.doc.length, insert: next },
    annotations: alone,
  });
}

function goTo(view, number) {
  const line = view.state.doc.line(Math.min(Math.max(1, number), view.state.doc.lines));
  select(view, line.from);
}

function jump(view, symbols, symbol) {
  const place = placesOf(view.state, symbols).find((one) => one.symbol === symbol);
  if (place) select(view, place.from);
}

// What is to be written is seldom at the top of a file of the engine. Only the editor scrolls:
// CodeMirror's own scrollIntoView would move the whole page of a phone as well.
function showFirst(view, symbols) {
  const [place] = placesOf(view.state, symbols);
  if (!place) return;
  view.requestMeasure({
    read: () => view.lineBlockAt(place.from).top - 30,
    write: (top) => {
      view.scrollDOM.scrollTop = top;
    },
  });
}

function select(view, at) {
  view.dispatch({
    selection: { anchor: at },
    effects: EditorView.scrollIntoView(at, { y: "start", yMargin: 30 }),
  });
  view.focus();
}
