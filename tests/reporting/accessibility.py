"""Checks of a page for readers who use a keyboard or a screen reader: axe-core where it is installed, and our own."""

import os
from pathlib import Path

_ROOT = Path(__file__).parents[2]
#: Where `make axe` puts it; the variable names another place.
AXE = Path(os.environ.get("CALIBRANT_AXE", _ROOT / ".venv/axe/node_modules/axe-core/axe.min.js"))

#: Names of things that break the rules, as a list of texts; every fold must be open.
OWN = r"""() => {
  const found = [], seen = new Set(), all = [...document.querySelectorAll('*')]
  const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden'
  const say = (rule, e) => found.push(rule + ': ' + e.outerHTML.slice(0, 120))
  for (const e of all) if (e.id) { if (seen.has(e.id)) say('duplicate id', e); seen.add(e.id) }
  for (const e of document.querySelectorAll('[aria-labelledby]'))
    if (!document.getElementById(e.getAttribute('aria-labelledby'))) say('named by nothing', e)
  for (const e of document.querySelectorAll('svg'))
    if (e.getAttribute('aria-hidden') !== 'true' && !e.querySelector('title')) say('figure without a name', e)
  for (const e of document.querySelectorAll('figure'))
    if (!e.querySelector('details.alt')) say('figure without text', e)
  for (const e of document.querySelectorAll('button, a, summary, input')) {
    const label = e.labels && e.labels[0] ? e.labels[0].textContent.trim() : ''
    const name = e.getAttribute('aria-label') || e.textContent.trim() || label
    if (!name) say('control without a name', e)
  }
  for (const e of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(e.getAttribute('href').slice(1))) say('link to nowhere', e)
  let level = 0
  for (const e of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const own = +e.tagName[1]
    if (own > level + 1) say('heading skips a level', e)
    level = own
  }
  for (const e of document.querySelectorAll('th')) if (!e.scope) say('header without scope', e)
  for (const e of all) {
    const scrolls = e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
    if (shown(e) && scrolls && e.tabIndex < 0) say('scrolls, but not by keyboard', e)
  }
  const parse = text => (text.match(/[\d.]+/g) || []).map(Number)
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  const light = rgb => rgb.slice(0, 3).map(v => linear(v / 255))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0)
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor)
      if (getComputedStyle(e).backgroundColor.startsWith('rgb') && (c.length < 4 || c[3] === 1)) return c
    }
    return [255, 255, 255]
  }
  for (const e of all) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
    if (!own || !shown(e) || e.closest('#tip, .skip, .vh, .cell, script, style')) continue
    const style = getComputedStyle(e), color = e.closest('svg') ? style.fill : style.color
    if (!color.startsWith('rgb')) continue
    const [a, b] = [light(parse(color)), light(behind(e))].sort((x, y) => y - x)
    if ((a + 0.05) / (b + 0.05) < 4.5) say('contrast ' + ((a + 0.05) / (b + 0.05)).toFixed(2), e)
  }
  return found
}"""


def own_findings(page):
    """What our own rules find, with every fold open."""
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    return page.evaluate(OWN)


def axe_findings(page):
    """Violations that axe-core calls serious or critical."""
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    page.evaluate(AXE.read_text(encoding="utf8") + "; 0")
    found = page.evaluate("axe.run(document)")["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in found if v["impact"] in ("serious", "critical")]
