import Foundation

/// The report as one self-contained HTML file: no script, no font, no request.
struct Page: Sendable {
  struct Fact: Sendable {
    var name, value: String
  }

  var title: String
  /// How the test was run, in one line.
  var subtitle: String
  var isOK: Bool
  /// The faults of the test, and remarks on its figures.
  var notes: [String]
  var facts: [Fact]
  /// The report's lines.
  var text: String
  var charts: [Chart]

  var html: String {
    """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark"><title>\(escaped(title))</title><style>\(Self.style)</style></head><body><main>
    <h1>\(escaped(title)) <span class="\(isOK ? "good" : "bad")">\(isOK ? "ok" : "not ok")</span></h1>
    <p class="sub">\(escaped(subtitle))</p>
    \(notes.isEmpty ? "" : "<ul class=\"notes \(isOK ? "" : "bad-edge")\">" + notes.map { "<li>\(escaped($0))</li>" }.joined() + "</ul>")
    <dl>\(facts.map { "<div><dt>\(escaped($0.name))</dt><dd>\(escaped($0.value))</dd></div>" }.joined())</dl>
    <section>\(charts.map(\.html).joined(separator: "\n"))</section>
    <details><summary>As text</summary><pre>\(escaped(text))</pre></details>
    </main></body></html>

    """
  }

  private static let style = """
    :root{--back:#f6f7f9;--card:#fff;--text:#1a1d21;--dim:#5b6470;--line:#d9dde3;--good:#17703c;--bad:#b3261e;\
    --c0:#1f63c4;--c1:#c05a00;--c2:#1b7f4d;--c3:#8a3fb0}
    @media(prefers-color-scheme:dark){:root{--back:#14171b;--card:#1d2127;--text:#e7eaee;--dim:#a3acb8;--line:#343a43;\
    --good:#6fd08f;--bad:#ff8a80;--c0:#7fb2ff;--c1:#ffab5e;--c2:#6fd6a0;--c3:#d59bf5}}
    *{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);font:16px/1.45 system-ui,sans-serif}
    main{max-width:1180px;margin:auto;padding:16px}h1{font-size:1.5rem;margin:.2em 0}
    h1 span{font-size:1rem;border:1px solid;border-radius:1em;padding:.1em .7em;vertical-align:middle;white-space:nowrap}
    .good{color:var(--good)}.bad{color:var(--bad)}.sub{color:var(--dim);margin:.2em 0 1em}
    .notes{background:var(--card);border-left:4px solid var(--dim);margin:0 0 1em;padding:.6em 1em .6em 2em;overflow-wrap:anywhere}
    .bad-edge{border-color:var(--bad)}
    dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:8px;margin:0 0 16px}
    dl div,figure{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;margin:0}
    dt{color:var(--dim);font-size:.85rem}dd{margin:0;font-size:1.15rem;font-variant-numeric:tabular-nums}
    section{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:12px}
    figcaption{font-weight:600}figcaption small{color:var(--dim);font-weight:400}
    svg{display:block;width:100%;height:auto;overflow:visible}svg text{fill:var(--dim);font-size:13px;font-variant-numeric:tabular-nums}
    svg .y{text-anchor:end}svg .x{text-anchor:middle}svg line{stroke:var(--line)}
    svg polyline{fill:none;stroke-width:2;stroke-linejoin:round}
    .keys{font-size:.85rem}.key{margin-right:1em;white-space:nowrap}
    .key::before{content:"";display:inline-block;width:1em;height:3px;background:currentColor;margin-right:.4em;vertical-align:middle}
    .key.c0{color:var(--c0)}.key.c1{color:var(--c1)}.key.c2{color:var(--c2)}.key.c3{color:var(--c3)}
    polyline.c0{stroke:var(--c0)}polyline.c1{stroke:var(--c1);stroke-dasharray:6 3}polyline.c2{stroke:var(--c2);stroke-dasharray:2 3}\
    polyline.c3{stroke:var(--c3)}
    rect.c0,circle.c0{fill:var(--c0)}circle.c1{fill:var(--c1)}circle.c2{fill:var(--c2)}circle.c3{fill:var(--c3)}
    details{margin:16px 0}pre{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;font-size:.85rem}
    """
}
