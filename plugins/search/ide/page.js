/**
 * The IDE in the browser: GraphiQL over the endpoint beside this page. `?query=`, `?variables=` and `?operationName=` are
 * read from the address and written back to it, so that users can share links. Subscriptions use Server-Sent Events.
 * Bundled by build.ts; loads nothing from other origins.
 */
import { GraphiQL } from 'graphiql'
import { createClient } from 'graphql-sse'
import { createElement } from 'react'
import { createRoot } from 'react-dom/client'
import 'graphiql/style.css'
import './page.css'

const address = new URL(window.location.href)
const endpoint = new URL('graphql', address.origin + address.pathname).href

const isSubscription = ({ query, operationName }) => {
  const kinds = [...query.matchAll(/^\s*(query|subscription)\b\s*(\w*)/gm)]
  const wanted = kinds.find(([, , name]) => operationName && name === operationName) ?? kinds[0]
  return wanted?.[1] === 'subscription'
}

const fetcher = (parameters, options = {}) => {
  const headers = { 'Content-Type': 'application/json', ...options.headers }
  if (isSubscription(parameters)) {
    return createClient({ url: `${endpoint}/stream`, headers, retryAttempts: 0 }).iterate(parameters)
  }
  return fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(parameters) }).then((answer) =>
    answer.json(),
  )
}

const example = `# Streams with where they come from and how good they are. Ctrl-Enter runs it.
{
  streams(limit: 5) {
    id
    generatedBy { id isHostedBy { id name geo { lon lat } } }
    observes { label }
    observation { hasSimpleResult unitCode observedAt }
    quality { completeness { rated } }
  }
}
`

const note = (name) => (value) => {
  const next = new URL(window.location.href)
  if (value) next.searchParams.set(name, value)
  else next.searchParams.delete(name)
  window.history.replaceState(null, '', next)
}

createRoot(document.getElementById('ide')).render(
  createElement(GraphiQL, {
    fetcher,
    defaultQuery: example,
    query: address.searchParams.get('query') ?? undefined,
    variables: address.searchParams.get('variables') ?? undefined,
    operationName: address.searchParams.get('operationName') ?? undefined,
    defaultHeaders: '{\n  "Authorization": "Bearer the token of the gateway, if it requires one"\n}',
    onEditQuery: note('query'),
    onEditVariables: note('variables'),
    onEditOperationName: note('operationName'),
  }),
)
