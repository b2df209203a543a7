// The parts of CodeMirror that the judge's page uses; build.mjs makes them one module.
export { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
export {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
  isolateHistory,
} from "@codemirror/commands";
export { python } from "@codemirror/lang-python";
export {
  bracketMatching,
  ensureSyntaxTree,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { Compartment, EditorState, RangeSet, StateField } from "@codemirror/state";
export {
  Decoration,
  drawSelection,
  EditorView,
  gutterLineClass,
  GutterMarker,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
export { tags } from "@lezer/highlight";
