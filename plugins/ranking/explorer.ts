/**
 * The page at the root of the ranking: a query form, the resulting address, and the response. It loads
 * nothing from other origins and contains no data. If the gateway requires a token, the user types it here;
 * it is sent as a header and never part of the address.
 */

export const explorer = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>Ranking</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
label { display: grid; grid-template-columns: 9rem 1fr; margin: .4rem 0 }
input { font: inherit; padding: .2rem .4rem }
pre { background: #8881; overflow: auto; padding: 1rem }
td, th { padding: .1rem .8rem .1rem 0; text-align: left }
</style>
<h1>Ranking</h1>
<p>Entities ordered by a weighted sum. All parameters are in the <a id="spec" href="spec">OpenAPI description</a>.</p>
<p>The weights below rate how recent and how regular values are, which works for every stream. Others rate qualities, such as
<code>qoi:hasQuality.qoi:completeness:0.5</code>; a stream without the quality scores 0 for it.</p>
<form>
<label>type <input name="type" value="http://purl.org/iot/ontology/iot-stream#IotStream"></label>
<label>weights <input name="weights" value="@freshness:0.5,@availability:0.5"></label>
<label>q <input name="q"></label>
<label>normalise <input name="normalise" placeholder="minmax"></label>
<label>rankPoint <input name="rankPoint" placeholder="longitude,latitude"></label>
<label>limit <input name="limit" value="20"></label>
<label>explain <input name="explain" value="true"></label>
<label>token <input id="token" type="password" autocomplete="off" placeholder="if the gateway requires one"></label>
<button>Rank</button>
</form>
<p><a id="address"></a></p>
<p id="warning" role="status"></p>
<table id="list"></table>
<pre id="answer" hidden></pre>
<script type="module">
const base = location.pathname.replace(/\\/*$/, '/')
const at = (id) => document.getElementById(id)
at('spec').href = base + 'spec'
document.forms[0].addEventListener('submit', async (event) => {
  event.preventDefault()
  const given = [...new FormData(event.target)].filter(([, value]) => value !== '')
  const address = base + 'ngsi-ld/v1/entities?' + new URLSearchParams(given)
  at('address').href = at('address').textContent = address
  const token = at('token').value.trim()
  const response = await fetch(address, { headers: token === '' ? {} : { Authorization: 'Bearer ' + token } })
  const text = await response.text()
  at('warning').textContent = response.headers.get('NGSILD-Warning') ?? ''
  at('list').replaceChildren()
  let shown = text
  try {
    const json = JSON.parse(text)
    shown = JSON.stringify(json, null, 2)
    if (response.ok && Array.isArray(json)) for (const entity of json) {
      const row = at('list').insertRow()
      row.insertCell().textContent = entity['http://iotcrawler.eu/rankScore']?.value ?? ''
      row.insertCell().textContent = entity.id
    }
  } catch {}
  at('answer').textContent = response.status + '\\n' + shown
  at('answer').hidden = false
})
</script>
</html>
`
