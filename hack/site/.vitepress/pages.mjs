// The map of the site: which document of the repository is on which page, and where it is in the sidebar. Documents stay
// where they are, so that they can be read without the site, and so that links in messages and alerts stay valid.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

// Each section: its title, the directory of its pages, and its documents as [document, page, title].
const sections = [
  ['Why', 'why', [
    ['docs/why.md', 'index', 'Why, and when not'],
    ['docs/reliability.md', 'reliability', 'Reliability'],
    ['docs/scale.md', 'scale', 'Scale'],
  ]],
  ['Get started', 'get-started', [
    ['README.md', 'index', 'Quickstart'],
    ['docs/first-hour.md', 'first-hour', 'The first hour'],
    ['docs/second-hour.md', 'second-hour', 'The second hour'],
  ]],
  ['Concepts', 'concepts', [
    ['docs/glossary.md', 'glossary', 'Slurm and Kubernetes words'],
    ['docs/architecture.md', 'architecture', 'Architecture'],
    ['docs/job-safety.md', 'job-safety', 'Job safety'],
    ['docs/configuration-flow.md', 'configuration-flow', 'From a spec to slurm.conf'],
  ]],
  ['Install', 'install', [
    ['docs/support.md', 'support', 'Supported versions'],
    ['docs/installation.md', 'index', 'With Helm'],
    ['docs/gitops.md', 'gitops', 'With GitOps'],
    ['docs/air-gapped.md', 'air-gapped', 'Without the internet'],
    ['docs/openshift.md', 'openshift', 'On OpenShift'],
    ['docs/sizing.md', 'sizing', 'Sizing'],
    ['images/README.md', 'images', 'Images'],
  ]],
  ['Guides', 'guides', [
    ['docs/nodesets.md', 'nodesets', 'NodeSets'],
    ['docs/elastic.md', 'elastic', 'Elastic NodeSets'],
    ['docs/login.md', 'login', 'Login pods'],
    ['docs/users.md', 'users', 'Users and their data'],
    ['docs/rest.md', 'rest', 'REST API'],
    ['docs/keys.md', 'keys', 'Keys and tokens'],
  ]],
  ['Operate', 'operate', [
    ['docs/troubleshooting.md', 'troubleshooting', 'Troubleshooting'],
    ['docs/kubectl-slurm.md', 'kubectl-slurm', 'kubectl slurm'],
    ['docs/monitoring.md', 'monitoring', 'Monitoring'],
    ['docs/log.md', 'log', 'Conditions, events, log'],
    ['docs/backup.md', 'backup', 'Backup and restore'],
    ['docs/webhooks.md', 'webhooks', 'Webhooks'],
    ['docs/runbooks/README.md', 'runbooks/index', 'Runbooks'],
    ['docs/faq.md', 'faq', 'Questions'],
  ]],
  ['Migrate', 'migrate', [
    ['docs/migrate.md', 'index', 'Move in'],
    ['docs/reference/values.md', 'values', 'Values of other charts'],
  ]],
  ['Security', 'security', [
    ['docs/security.md', 'index', 'Threat model and hardening'],
    ['SECURITY.md', 'report', 'Report a vulnerability'],
  ]],
  ['Reference', 'reference', [
    ['docs/reference/api.md', 'api', 'API'],
    ['docs/reference/status.md', 'status', 'Status and conditions'],
    ['docs/reference/additions.md', 'additions', 'API additions'],
    ['docs/reference/configuration.md', 'configuration', 'slurm.conf'],
    ['docs/reference/change-costs.md', 'change-costs', 'Costs of changes'],
    ['charts/slurm/README.md', 'chart-slurm', 'Chart slurm'],
    ['charts/slurm-operator/README.md', 'chart-slurm-operator', 'Chart slurm-operator'],
    ['charts/slurm-operator-crds/README.md', 'chart-slurm-operator-crds', 'Chart slurm-operator-crds'],
    ['docs/reference/kubectl-slurm.md', 'kubectl-slurm', 'kubectl slurm'],
    ['docs/reference/metrics.md', 'metrics', 'Metrics'],
    ['docs/reference/licenses.md', 'licenses', 'Licenses'],
  ]],
  ['Project', 'project', [
    ['docs/releases.md', 'releases', 'Releases'],
    ['docs/roadmap.md', 'roadmap', 'Roadmap'],
    ['docs/requirements.md', 'requirements', 'Requirements'],
    ['GOVERNANCE.md', 'governance', 'Governance'],
    ['ADOPTERS.md', 'adopters', 'Adopters'],
    ['CODE_OF_CONDUCT.md', 'code-of-conduct', 'Code of conduct'],
  ]],
  ['Contribute', 'contribute', [
    ['CONTRIBUTING.md', 'index', 'Contributing'],
    ['docs/development.md', 'development', 'Development'],
    ['docs/slurm-client.md', 'slurm-client', 'The Slurm client'],
    ['docs/adr/README.md', 'decisions/index', 'Decisions'],
    ['hack/site/README.md', 'site', 'This site'],
  ]],
]

// Directories with many documents of one sort, which have the titles of their documents.
const collections = [
  ['docs/runbooks', 'operate/runbooks', 'Runbooks by reason', 'Operate'],
  ['docs/adr', 'contribute/decisions', 'Decisions by number', 'Contribute'],
]

// documents lists the Markdown files of the repository, except those that a test or a tool owns.
function documents(directory = '') {
  return fs.readdirSync(path.join(root, directory), { withFileTypes: true }).flatMap(entry => {
    const name = path.posix.join(directory, entry.name)
    if (entry.isDirectory()) {
      const skipped = entry.name.startsWith('.') || ['node_modules', 'testdata'].includes(entry.name) || name === 'bin'
      return skipped ? [] : documents(name)
    }
    return name.endsWith('.md') ? [name] : []
  })
}

function title(document) {
  const text = fs.readFileSync(path.join(root, document), 'utf8')
  const heading = /^# (.+)$/m.exec(text)
  if (!heading) throw new Error(`${document} has no heading of the first level: its page would have no title`)
  return heading[1]
}

const all = documents()
const pageOf = new Map([['hack/site/index.md', 'index.md']])

export const sidebar = sections.map(([text, directory, items]) => ({
  text,
  collapsed: true,
  items: items.map(([document, page, text]) => {
    pageOf.set(document, `${directory}/${page}.md`)
    return { text, link: `/${directory}/${page.replace(/(^|\/)index$/, '$1')}` }
  }),
}))

for (const [directory, site, text, section] of collections) {
  const items = all.filter(document => path.posix.dirname(document) === directory && !pageOf.has(document)).map(document => {
    const page = path.posix.basename(document)
    pageOf.set(document, `${site}/${page}`)
    return { text: title(document), link: `/${site}/${page.replace(/\.md$/, '')}` }
  })
  sidebar.find(part => part.text === section).items.push({ text, collapsed: true, items })
}

for (const document of pageOf.keys()) {
  if (!all.includes(document)) throw new Error(`${document} does not exist: correct hack/site/.vitepress/pages.mjs`)
}
for (const document of all) {
  if (document.startsWith('docs/') && !pageOf.has(document)) {
    throw new Error(`${document} is on no page of the site: add it to a section in hack/site/.vitepress/pages.mjs`)
  }
}

// rewrites has the page of each document; excluded are all other Markdown files.
export const rewrites = Object.fromEntries(pageOf)
export const excluded = ['bin/**', '**/testdata/**', ...all.filter(document => !pageOf.has(document))]
