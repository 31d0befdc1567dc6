(() => {
  const root = document.documentElement, tip = document.getElementById('tip'), theme = document.querySelector('.theme')
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
  root.dataset.script = 'on'
  document.addEventListener('pointermove', event => {
    const over = event.target.closest && event.target.closest('[data-tip]')
    tip.style.opacity = over ? 1 : 0
    if (!over) return
    tip.textContent = over.dataset.tip
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px'
    tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 12) + 'px'
  })
  theme.textContent = dark() ? 'Light' : 'Dark'
  theme.onclick = () => { root.dataset.theme = dark() ? 'light' : 'dark'; theme.textContent = dark() ? 'Light' : 'Dark' }
  document.querySelectorAll('.copy').forEach(button => {
    button.onclick = () => navigator.clipboard && navigator.clipboard
      .writeText(button.parentNode.querySelector('pre').textContent).then(() => { button.textContent = 'Copied' })
  })
  const open = () => { const named = document.getElementById(location.hash.slice(1)); if (named && named.tagName === 'DETAILS') named.open = true }
  addEventListener('hashchange', open)
  open()
  let before
  addEventListener('beforeprint', () => {
    before = root.dataset.theme || ''
    root.dataset.theme = 'light'
    document.querySelectorAll('.fold').forEach(fold => { fold.open = true })
  })
  addEventListener('afterprint', () => { before ? root.dataset.theme = before : delete root.dataset.theme })
})()
