import path from 'node:path'
import { defineConfig } from 'vitepress'
import { excluded, rewrites, root, sidebar } from './pages.mjs'
import { adapt, repository, slug } from './repository.mjs'

const version = process.env.VERSION || 'development'

// A published site has one directory for each release below SITE_ROOT, and SITE_VERSIONS lists them, newest first. A
// local build has neither, and is at the root of its server.
const siteRoot = process.env.SITE_ROOT
const versions = (process.env.SITE_VERSIONS ?? '').split(' ').filter(Boolean)

export default defineConfig({
  title: 'slurm-operator',
  description: 'Slurm clusters on Kubernetes, without losing a job',
  lang: 'en',
  base: siteRoot ? `${siteRoot}${version}/` : '/',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${siteRoot ? `${siteRoot}${version}` : ''}/logo.svg` }]],

  srcDir: root,
  srcExclude: excluded,
  rewrites,
  outDir: path.join(root, 'bin/site'),
  cacheDir: path.join(root, 'hack/site/node_modules/.cache/vitepress'),
  metaChunk: true,

  markdown: {
    anchor: { slugify: slug },
    config: adapt,
  },

  themeConfig: {
    logo: '/logo.svg',
    search: { provider: 'local', options: { detailedView: true } },
    outline: [2, 3],
    sidebar,
    nav: [
      { text: 'Why', link: '/why/' },
      { text: 'Get started', link: '/get-started/' },
      { text: 'Guides', link: '/guides/nodesets' },
      { text: 'Operate', link: '/operate/troubleshooting' },
      { text: 'API', link: '/reference/api' },
      { text: version, items: versions.map(name => ({ text: name, link: `${siteRoot}${name}/`, target: '_self' })) },
    ].filter(entry => entry.link || entry.items.length > 0),
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path`, text: 'Edit this page' },
    footer: { message: `${version}. Apache-2.0. Slurm is a trademark of SchedMD LLC.` },
  },

  vite: {
    publicDir: path.join(root, 'hack/site/public'),
    // Documents are outside the directory with node_modules: on the server, Node finds Vue when it runs the bundle.
    plugins: [{
      name: 'vue-of-the-site',
      enforce: 'pre',
      resolveId: (id, importer, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : null),
    }],
    build: { chunkSizeWarningLimit: 4096 },
  },
})
