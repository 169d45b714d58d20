/**
 * Routes of context source registrations and of subscriptions to them (GS CIM 009, 6.8, 6.9, 6.12 and 6.13).
 * Parsers validate the documents and the broker acts on them.
 */
import type { SubscriptionForwarding } from '#federation/subscription-forwarding.ts'
import type { ApiRequest } from '#http/request/request.ts'
import { checkLanguages } from '#ngsi-ld/entity/language.ts'
import { inBestLanguage, renderRegistration } from '#ngsi-ld/federation/registration.ts'
import { attributesOf, type Discovery } from '#ngsi-ld/federation/registration-match.ts'
import { parseRegistration, patchRegistration } from '#ngsi-ld/federation/registration-parse.ts'
import {
  parseSourceSubscription,
  parseTime,
  patchSourceSubscription,
  renderSourceSubscription,
} from '#ngsi-ld/federation/source-subscription.ts'
import { parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { parseGeoQuery } from '#ngsi-ld/query/geo-query.ts'
import { compileQuery } from '#ngsi-ld/query/query-match.ts'
import { parseQuery } from '#ngsi-ld/query/query-parse.ts'
import { parseScopeQuery } from '#ngsi-ld/query/scope-query.ts'
import { listOf } from '#ngsi-ld/query/url-parameters.ts'
import { parseSourceFilter } from '#ngsi-ld/subscription/subscription-parse.ts'
import { checkListedName, checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { compileIdPattern } from '#ngsi-ld/values/pattern.ts'
import { type ResourceRoutePorts, resourceTable } from './resources.ts'
import { checkContext, type SubscriptionRoutePorts, withContextAddress } from './subscription-routes.ts'

const temporalParameters = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty'] as const
const discoverySelectors = [
  ...temporalParameters,
  'id',
  'idPattern',
  'type',
  'attrs',
  'pick',
  'omit',
  'lang',
  'q',
  'csf',
  'scopeQ',
  'georel',
  'geometry',
  'coordinates',
  'geoproperty',
]

/** Members that pick and omit may name beside attributes. */
const entityMembers: ReadonlySet<string> = new Set(['id', 'type', 'scope', 'expiresAt'])

/** All routes of context sources by path and method. */
export function createContextSourceTable({
  contexts,
  ...ports
}: ResourceRoutePorts & {
  readonly contexts: SubscriptionRoutePorts['contexts']
  readonly forwarding: Pick<SubscriptionForwarding, 'registrationChanged'>
}) {
  return {
    ...resourceTable(ports, {
      path: '/ngsi-ld/v1/csourceRegistrations',
      noun: 'registration',
      idPrefix: 'urn:ngsi-ld:ContextSourceRegistration:',
      storeOf: ({ registrations }) => registrations,
      page(request, paging) {
        const { views, count } = request.broker.registrations.discover(discoveryOf(request), paging)
        const lang = request.parameters.get('lang')
        return lang === undefined ? { views, count } : { views: inBestLanguage(lang, views), count }
      },
      selectors: discoverySelectors,
      parse: parseRegistration,
      patch: patchRegistration,
      idOf: ({ id }) => id,
      render: renderRegistration,
      changed: ports.forwarding.registrationChanged,
    }),
    ...resourceTable(ports, {
      path: '/ngsi-ld/v1/csourceSubscriptions',
      noun: 'subscription',
      idPrefix: 'urn:ngsi-ld:Subscription:',
      storeOf: ({ sourceSubscriptions }) => sourceSubscriptions,
      page: ({ broker }, paging) => broker.sourceSubscriptions.list(paging),
      parse: parseSourceSubscription,
      patch: patchSourceSubscription,
      idOf: ({ subscription }) => subscription.id,
      render: ({ one, statistics }, options) => renderSourceSubscription(one, { ...options, statistics }),
      check: (request) => checkContext(contexts, request),
      complete: async (c, one, of) => ({
        ...one,
        subscription: await withContextAddress(c, one.subscription, of),
      }),
    }),
  }
}

/**
 * The criteria of a registration query (5.10.2).
 *
 * @throws ngsi-ld.bad-request-data if it would match everything, or if a part is malformed.
 */
function discoveryOf({ parameters, context }: ApiRequest): Discovery {
  const given = (name: string): string | undefined => parameters.get(name)
  const [type, q, csf, idPattern, scopeQ] = ['type', 'q', 'csf', 'idPattern', 'scopeQ'].map(given)
  const ids = listOf(parameters, 'id')?.map((id) => checkUri(id, 'id'))
  if (idPattern !== undefined) compileIdPattern(idPattern, 'idPattern')
  const lang = given('lang')
  if (lang !== undefined) checkLanguages(lang)
  const tree = q === undefined ? undefined : parseQuery(q, context.expand)
  if (tree !== undefined) compileQuery(tree)
  const geo = parseGeoQuery(
    {
      georel: given('georel'),
      geometry: given('geometry'),
      coordinates: given('coordinates'),
      geoproperty: given('geoproperty'),
    },
    context.expand,
  )
  const times = Object.fromEntries(temporalParameters.map((name) => [name, given(name)]))
  const isTemporal = temporalParameters.some((name) => given(name) !== undefined)
  const time = isTemporal ? parseTime(times) : undefined
  const namesIn = (name: string): string[] | undefined =>
    listOf(parameters, name)
      ?.filter((term) => name === 'attrs' || !entityMembers.has(term))
      .map((term) => (name === 'attrs' ? checkListedName : checkName)(context.expand(term), name))
  if (given('attrs') !== undefined && given('pick') !== undefined)
    throw badRequestData('cannot be combined with attrs', 'pick')
  const picked = namesIn('pick')
  const attrs =
    namesIn('attrs') ??
    (picked === undefined || picked.length === 0 ? undefined : picked) ??
    (tree === undefined ? undefined : attributesOf(tree))
  if (type === undefined && attrs === undefined && geo === undefined)
    throw badRequestData('one of type, attrs, q or georel is required')
  const types = type === undefined ? undefined : parseTypeSelection(type, context.expand)
  return {
    interests: [{ ids, idPattern, types, attrs, omit: namesIn('omit') }],
    geo,
    time,
    scope: scopeQ === undefined ? undefined : parseScopeQuery(scopeQ),
    csf: csf === undefined ? undefined : parseSourceFilter(csf, context),
  }
}
