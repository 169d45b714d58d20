/**
 * Units of the usual names of Tasmota, Shelly, Zigbee2MQTT and The Things Network. Each firmware has its own
 * table, because the unit of a name such as `voltage` or `energy` differs between them. A name that is not
 * listed has no unit; units are never guessed.
 */
import { type Unit, writtenUnit } from '#bridges/units.ts'

/** A unit, and the factor that converts the value to it. */
export interface UsualUnit extends Unit {
  readonly scale?: number
}

type Table = ReadonlyMap<string, UsualUnit>

/** `unit: name name ...; unit: ...` */
function table(text: string): Table {
  const lines = text.split(';').map((line) => line.trim().split(/:\s+/))
  return new Map(
    lines.flatMap(([unit = '', names = '']) =>
      names.split(/\s+/).map((name) => [name, writtenUnit(unit)] as const),
    ),
  )
}

/**
 * TempUnit and similar members determine the units of Temperature, Pressure and so on; see conventions.ts.
 */
export const tasmotaUnits: Table = table(`
  %: Humidity RSSI Battery BatteryPercentage Moisture;
  W: Power ExportPower;
  VA: ApparentPower;
  var: ReactivePower;
  V: Voltage Vcc;
  A: Current;
  kWh: Total Today Yesterday ExportActive ExportTotal;
  Wh: Period;
  Hz: Frequency;
  ppm: CarbonDioxide eCO2;
  ppb: TVOC;
  lx: Illuminance;
  ug/m3: PM1 PM2.5 PM10;
  dBm: Signal;
  s: UptimeSec;
  cm: Distance;
  kg: Weight
`)

/** Generation 2 and later, in components such as switch:0. */
export const shellyUnits: Table = table(`
  °C: tC;
  %: rh percent brightness current_pos;
  W: apower act_power total_act_power;
  VA: aprt_power total_aprt_power;
  V: voltage V;
  A: current total_current n_current;
  Wh: total ret_total;
  Hz: freq;
  lx: lux;
  dBm: rssi;
  s: uptime
`)

/** Generation 1, by the last name in the topic. Energy of a relay is counted in watt-minutes. */
export const shellyGen1Units: Table = new Map<string, UsualUnit>([
  ...table(`
    °C: temperature ext_temperature ext_temperatures;
    °F: temperature_f ext_temperature_f ext_temperatures_f;
    %: humidity ext_humidity ext_humidities battery;
    W: power;
    var: reactive_power;
    V: voltage;
    A: current;
    Wh: total total_returned;
    lx: lux;
    °: tilt
  `),
  ...['energy', 'returned_energy'].map((name) => [name, { ...writtenUnit('Wh'), scale: 1 / 60 }] as const),
])

/** See conventions.ts for `voltage`. */
export const zigbeeUnits: Table = table(`
  °C: temperature device_temperature local_temperature external_temperature soil_temperature current_heating_setpoint occupied_heating_setpoint;
  %: humidity battery soil_moisture position brightness_percent;
  hPa: pressure;
  lx: illuminance illuminance_lux;
  W: power;
  A: current;
  kWh: energy produced_energy;
  Hz: ac_frequency;
  ppm: co2;
  ug/m3: pm1 pm25 pm10;
  dB: noise
`)

/**
 * Names of Cayenne LPP, of the normalized payload, and of widely used decoders; a channel number may follow.
 */
export const ttnUnits: Table = table(`
  °C: temperature TempC_SHT TempC_DS TempC1 TempC2 TempC3 Temp_Black Temp_Red Temp_White soil_temperature air_temperature;
  %: humidity relative_humidity relativeHumidity Hum_SHT battery_percentage soil_moisture;
  hPa: barometric_pressure;
  lx: luminosity illuminance light ILL_lx;
  V: BatV Bat_V battery_voltage;
  mV: BatmV;
  ppm: co2 CO2;
  °: latitude longitude;
  m: altitude
`)
