// The functions that the reader is to write, found in the code as it stands now.
//
// They are looked for by name in the syntax tree and not by the line numbers of the starter:
// those are wrong as soon as a line is added above, or an older draft is opened.
import {
  Decoration,
  ensureSyntaxTree,
  EditorView,
  GutterMarker,
  gutterLineClass,
  RangeSet,
  StateField,
} from "./vendor/cm6.mjs";

const PARSE_MS = 100;

class Yours extends GutterMarker {
  elementClass = "cm-yours";
}

const GUTTER = new Yours();
const LINE = Decoration.line({ class: "cm-yours" });

/** Each symbol that is there as {symbol, from, to}, in the order of the file. */
export function placesOf(state, symbols) {
  const tree = ensureSyntaxTree(state, state.doc.length, PARSE_MS);
  if (!tree) return [];
  const wanted = new Set(symbols);
  return [...definitions(tree.topNode, "", state)].filter((place) => wanted.has(place.symbol));
}

/** The extension that marks the lines of these functions, in the text and beside it. */
export function functionMarks(symbols) {
  const field = StateField.define({
    create: (state) => marked(state, symbols),
    update: (value, change) => (change.docChanged ? marked(change.state, symbols) : value),
    provide: (self) => [
      EditorView.decorations.from(self, (value) => value.lines),
      gutterLineClass.from(self, (value) => value.gutter),
    ],
  });
  return field;
}

function marked(state, symbols) {
  const starts = new Set();
  for (const place of placesOf(state, symbols)) {
    const last = state.doc.lineAt(place.to).number;
    for (let number = state.doc.lineAt(place.from).number; number <= last; number++) {
      starts.add(state.doc.line(number).from);
    }
  }
  const sorted = [...starts].sort((a, b) => a - b);
  return {
    lines: Decoration.set(sorted.map((at) => LINE.range(at))),
    gutter: RangeSet.of(sorted.map((at) => GUTTER.range(at))),
  };
}

function* definitions(parent, prefix, state) {
  for (let node = parent.firstChild; node; node = node.nextSibling) {
    const inner = node.name === "DecoratedStatement" ? node.lastChild : node;
    if (inner.name !== "FunctionDefinition" && inner.name !== "ClassDefinition") continue;
    const name = inner.getChild("VariableName");
    if (!name) continue;
    const symbol = prefix + state.sliceDoc(name.from, name.to);
    yield { symbol, from: node.from, to: endOf(node, state) };
    const body = inner.getChild("Body");
    if (body) yield* definitions(body, `${symbol}.`, state);
  }
}

// A body runs up to the next statement; the blank lines there belong to nobody.
function endOf(node, state) {
  const text = state.sliceDoc(node.from, node.to);
  return node.from + text.trimEnd().length;
}
