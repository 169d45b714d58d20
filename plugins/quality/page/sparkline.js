/** A rated value over time: a step line from 0 to 1, drawn by uPlot as wide as its place. */
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

const height = 34
const stepped = uPlot.paths.stepped({ align: 1 })

/** @returns an object with the element and `draw(points)`; points are pairs of ms and value. */
export function sparkline() {
  const place = document.createElement('div')
  place.className = 'sparkline'
  place.setAttribute('aria-hidden', 'true')
  let plot
  let look
  return {
    place,
    draw(points) {
      place.hidden = points.length === 0
      const width = place.clientWidth
      if (points.length === 0 || width === 0) return
      const data = [points.map(([at]) => at), points.map(([, value]) => value)]
      const { color } = getComputedStyle(place)
      const current = `${width} ${color}`
      if (plot !== undefined && look === current) return plot.setData(data)
      plot?.destroy()
      look = current
      plot = new uPlot(options(width, color), data, place)
    },
  }
}

const options = (width, colour) => ({
  width,
  height,
  padding: [3, 2, 3, 2],
  cursor: { show: false },
  legend: { show: false },
  axes: [{ show: false }, { show: false }],
  scales: { x: { time: false }, y: { range: [0, 1] } },
  series: [{}, { stroke: colour, width: 1.5, paths: stepped, points: { show: false } }],
})
