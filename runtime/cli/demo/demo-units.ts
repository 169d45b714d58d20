/**
 * Symbols of units, by their UN/CEFACT common codes (Recommendation 20).
 */

const symbols: Readonly<Record<string, string>> = {
  CEL: '°C',
  FAH: '°F',
  KEL: 'K',
  P1: '%',
  NX: '‰',
  59: 'ppm',
  61: 'ppb',
  A97: 'hPa',
  PAL: 'Pa',
  KPA: 'kPa',
  BAR: 'bar',
  MTS: 'm/s',
  KMH: 'km/h',
  MMT: 'mm',
  CMT: 'cm',
  MTR: 'm',
  KMT: 'km',
  G51: 'l/s',
  L2: 'l/min',
  LTR: 'l',
  MTQ: 'm³',
  GRM: 'g',
  KGM: 'kg',
  GQ: 'µg/m³',
  GP: 'mg/m³',
  MIN: 'min',
  SEC: 's',
  HUR: 'h',
  WTT: 'W',
  KWT: 'kW',
  WHR: 'Wh',
  KWH: 'kWh',
  D54: 'W/m²',
  VLT: 'V',
  AMP: 'A',
  HTZ: 'Hz',
  LUX: 'lx',
  '2N': 'dB',
  DBM: 'dBm',
  DD: '°',
  // A count has no unit.
  C62: '',
}

/** A value with its unit; a code without a symbol here stays a code. */
export function withUnit(value: unknown, unitCode: string | undefined): string {
  const symbol = unitCode === undefined ? '' : (symbols[unitCode] ?? unitCode)
  return symbol === '' ? String(value) : `${value} ${symbol}`
}
