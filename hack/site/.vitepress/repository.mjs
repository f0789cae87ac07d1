// Adapts documents of the repository to pages of the site: links between documents lead to pages, links to other files to
// the repository, and diagrams are drawn.
import fs from 'node:fs'
import path from 'node:path'
import { rewrites, root } from './pages.mjs'

export const repository = 'https://github.com/slurm-operator/slurm-operator'

// slug returns the anchor of a heading as GitHub does, so that a link has the same anchor there and here. hack/links has
// the same function.
export function slug(text) {
  return text.trim().toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')
}

// adapt is a plugin of markdown-it.
export function adapt(md) {
  md.core.ruler.push('repository', state => {
    const file = state.env.realPath ?? state.env.path
    if (!file) return // the title of a page, which has no links
    const document = path.relative(root, file)
    for (const token of state.tokens) {
      if (token.type === 'fence' && token.info.trim() === 'mermaid') {
        token.type = 'html_block'
        token.content = `<Diagram source="${encodeURIComponent(token.content)}" />\n`
      } else if (token.type === 'code_block') {
        token.type = 'fence' // so that indented code looks like other code
      }
      for (const child of token.children ?? []) {
        if (child.type === 'link_open') child.attrSet('href', resolve(document, child.attrGet('href')))
      }
    }
  })
  // Long names of fields may be broken after a dot, so that tables fit the page.
  const code = md.renderer.rules.code_inline
  md.renderer.rules.code_inline = (...args) => code(...args).replace(/(\w[./])(?=\w)/g, '$1<wbr>')
}

// resolve returns what a link in a document leads to: a page of the site, or a file in the repository.
export function resolve(document, href) {
  if (/^([a-z]+:|#)/.test(href) || document === 'hack/site/index.md') return href
  const [file, anchor] = href.split('#', 2)
  const target = path.posix.join(path.posix.dirname(document), decodeURI(file))
  const suffix = anchor ? `#${anchor}` : ''
  const page = rewrites[target] ?? rewrites[path.posix.join(target, 'README.md')]
  if (page) return `/${page}${suffix}`
  const found = fs.statSync(path.join(root, target), { throwIfNoEntry: false })
  if (!found) throw new Error(`${document} links to ${target}, which does not exist: correct the link`)
  return `${repository}/${found.isDirectory() ? 'tree' : 'blob'}/main/${target}${suffix}`
}
