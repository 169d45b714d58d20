/**
 * Converts units as devices write them to UN/CEFACT common codes (Recommendation 20, revision 17). A code is
 * assigned only if the unit has the same quantity and size: nothing is converted, and unknown units remain
 * text that a person can map. The lookup first matches letter case exactly (mW is not MW), then accepts
 * unambiguous variants.
 */

/** A common code, or the text as written; neither if there is no unit. */
export interface Unit {
  readonly unitCode?: string | undefined
  readonly unitText?: string | undefined
}

/** The SenML units registry of IANA: RFC 8428 12.1, RFC 8798 (secondary units too) and later entries. */
const senmlUnits = table(`
  m MTR  kg KGM  g GRM  s SEC  A AMP  K KEL  cd CDL  mol C34  Hz HTZ  rad C81  sr D27  N NEW  Pa PAL  J JOU
  W WTT  C COU  V VLT  F FAR  Ohm OHM  S SIE  Wb WEB  T D33  H 81  Cel CEL  lm LUM  lx LUX  Bq BQL  Gy A95
  Sv D13  kat KAT  m2 MTK  m3 MTQ  l LTR  m/s MTS  m/s2 MSK  m3/s MQS  l/s G51  W/m2 D54  cd/m2 A24  bit A99
  bit/s B10  lat DD  lon DD  pH Q30  dB 2N  dBW DBW  Bspl M72  count C62  / C62  % P1  %RH P1  %EL P1  EL SEC
  1/s C97  1/min C94  beat/min BPM  beats C62  S/m D10  B AD  VA D46  var D44  J/m B12  kg/m3 KMQ  deg DD
  NTU NTU  ms C26  min MIN  h HUR  MHz MHZ  kW KWT  kVA KVA  kvar KVR  Ah AMH  Wh WHR  kWh KWH  kvarh K3
  kVAh C79  KiB E64  GB E34  Mbit/s E20  B/s P93  MB/s P95  mV 2Z  mA 4K  dBm DBM  ug/m3 GQ  mm/h H67  m/h M60
  ppm 59  ppb 61  /100 P1  /1000 NX  hPa A97  mm MMT  cm CMT  km KMT  km/h KMH  mg/l M1  ug/l H29  g/l GL
`)

/** Other spellings on home, energy and weather devices; ° is a degree of angle, C and F are temperatures. */
const writtenUnits = table(`
  C CEL  °C CEL  ℃ CEL  degC CEL  F FAH  °F FAH  ℉ FAH  degF FAH  °K KEL  ° DD  lux LUX  klx KLX  Ω OHM
  mΩ E45  kΩ B49  kOhm B49  MΩ B75  MOhm B75  kPa KPA  MPa MPA  mbar MBR  bar BAR  psi PS  inHg F79  kHz KHZ
  GHz A86  us B98  d DAY  kV KVT  uV D82  uA B84  kA B22  mW C31  MW MAW   MWh MWH  GWh GWH  mAh E09
  kJ KJO  MJ 3B  GJ GV  MVA MVA  mg MGM  t TNE  oz ONZ  lb LBR  lbs LBR  in INH  ft FOT  um 4H  nm C45
  cm2 CMK  mm2 MMK  km2 KMK  L LTR  ml MLT  mL MLT   L/s G51  L/min L2  l/min L2  L/h E32  l/h E32
  m3/h MQH  mm/s C16  mph HM  kn KNT  kt KNT  °/s E96  rad/s 2A  rpm RPM  bpm BPM  g/m3 A93  mg/m3 GP
  mg/L M1  ug/L H29  g/L GL  uS/cm G42  mS/cm H61  dS/m H61  uSv/h P72  uT D81  mT C29  Nm NU  kB 2P  MB 4L
  KB 2P  TB E35  MiB E63  GiB E62  kB/s P94  kbit/s C74  Gbit/s B80  vol% VP  ‰ NX  pct P1
`)

/** Whole words, for which letter case is unambiguous. */
const wordUnits = table(`
  celsius CEL  degreescelsius CEL  fahrenheit FAH  degreesfahrenheit FAH  kelvin KEL  percent P1  volt VLT
  volts VLT  ampere AMP  amperes AMP  amp AMP  amps AMP  watt WTT  watts WTT  kilowatt KWT  watthour WHR
  watthours WHR  kilowatthour KWH  kilowatthours KWH  joule JOU  pascal PAL  hectopascal A97  kilopascal KPA
  hertz HTZ  meter MTR  metre MTR  meters MTR  metres MTR  kilometer KMT  kilometre KMT  millimeter MMT
  millimetre MMT  gram GRM  grams GRM  kilogram KGM  kilograms KGM  liter LTR  litre LTR  liters LTR
  litres LTR  second SEC  seconds SEC  minute MIN  minutes MIN  hour HUR  hours HUR  day DAY  days DAY
  degree DD  degrees DD  decibel 2N  ohm OHM  lumen LUM  byte AD  bytes AD  rpm RPM  ph Q30  dba 2N  db 2N
  dbm DBM  kwh KWH  wh WHR  khz KHZ  hz HTZ  lx LUX  ppm 59  ppb 61  hpa A97  kpa KPA
`)

/**
 * Codes that a device may write itself. Short ones are excluded, because they are also spellings of other
 * units.
 */
const ownCodes = new Set(
  [...senmlUnits.values(), ...writtenUnits.values()].filter((code) => code.length === 3),
)

/**
 * Unit of a SenML record (`u` or `bu`): by the registry, in which C is a coulomb, else as devices write it.
 */
export function senmlUnit(text: string | undefined): Unit {
  if (text === undefined || text === '') return {}
  return named(senmlUnits.get(text) ?? spelled(text), text)
}

/** Unit as written on devices without a registry; C is a degree Celsius. */
export function writtenUnit(text: unknown): Unit {
  if (typeof text !== 'string' || text.trim() === '') return {}
  return named(spelled(text), text)
}

/** Unit of a quantity summed over time (SenML `s`): the unit times a second. */
export function timesSecond(text: string | undefined): Unit {
  if (text === undefined || text === '') return {}
  return named(timesSecondCodes.get(text), `${text}.s`)
}

const timesSecondCodes = table(
  'W JOU  A COU  m/s MTR  m3/s MTQ  l/s LTR  1/s C62  Hz C62  B/s AD  bit/s A99  Bq C62',
)

const named = (unitCode: string | undefined, text: string): Unit =>
  unitCode === undefined ? { unitText: text } : { unitCode }

function spelled(text: string): string | undefined {
  const bare = text
    .trim()
    .replace(/[µμ]/g, 'u')
    .replaceAll('²', '2')
    .replaceAll('³', '3')
    .replace(/[\s^·⋅_]/g, '')
  const code = writtenUnits.get(bare) ?? senmlUnits.get(bare) ?? wordUnits.get(bare.toLowerCase())
  return code ?? (ownCodes.has(bare) ? bare : undefined)
}

/** Alternating spellings and codes. */
function table(text: string): ReadonlyMap<string, string> {
  const words = text.trim().split(/\s+/)
  const pairs = words.flatMap((word, index) => (index % 2 === 0 ? [[word, words[index + 1]!] as const] : []))
  return new Map(pairs)
}
