// Translates the English page without a reload, which would lose the current view. The page's catalogue gets the texts of the other language, and texts that
// are already shown are looked up in the English catalogue. Calling `conclaveEnglish` reverts it. `catalogue` is the other catalogue, and `lang` and `dir` are
// its language and direction. `arguments[0]` is called at the end, with an error or ''.
const done = arguments[0];
(async () => {
  const { default: shown } = await import(`${location.origin}/page/catalogues/en.js`);
  const english = { ...shown };
  const isolated = (text) => text.replace(/\{\w+\}/g, '\u2068$&\u2069');
  const forms = (entry) => (typeof entry === 'string' ? { other: entry } : entry);
  const mapped = (entry) => Object.fromEntries(Object.entries(forms(entry)).map(([form, text]) => [form, isolated(text)]));
  const patterns = Object.entries(english).flatMap(([key, entry]) =>
    Object.entries(forms(entry)).filter(([, text]) => /[a-z]{2}/i.test(text.replace(/\{\w+\}/g, ''))).map(([form, text]) => {
      const named = new Set();
      const parts = text.split(/\{(\w+)\}/).map((part, index) => {
        if (index % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
        if (named.has(part)) return `\\k<${part}>`;
        named.add(part);
        return `(?<${part}>.+?)`;
      });
      const translated = mapped(catalogue[key]);
      return { count: named.size, length: text.length, pattern: new RegExp(`^${parts.join('')}$`, 's'), text: translated[form] ?? translated.other };
    }),
  ).sort((one, other) => one.count - other.count || other.length - one.length);
  const translate = (words) => words.split(/ ·\s/).map((part) => {
    for (const { pattern, text } of patterns) {
      const found = pattern.exec(part.trim());
      if (found) return text.replace(/\{(\w+)\}/g, (_, name) => translate(found.groups?.[name] ?? ''));
    }
    return part;
  }).join(' · ');
  for (const [key, entry] of Object.entries(catalogue)) shown[key] = typeof entry === 'string' ? isolated(entry) : mapped(entry);
  const undo = [];
  const change = (node, property) => {
    const before = node[property];
    const after = before && translate(before);
    if (before === after) return;
    node[property] = after;
    undo.push(() => node[property] === after && (node[property] = before));
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) if (node.data.trim() && !node.parentElement.closest('option, [translate=no]')) change(node, 'data');
  for (const node of document.querySelectorAll('[aria-label], [placeholder]')) for (const property of ['ariaLabel', 'placeholder']) change(node, property);
  Object.assign(document.documentElement, { lang, dir });
  window.conclaveEnglish = () => {
    Object.assign(shown, english);
    for (const one of undo) one();
    Object.assign(document.documentElement, { lang: 'en', dir: 'ltr' });
  };
})().then(() => done(''), (error) => done(String(error.stack)));
