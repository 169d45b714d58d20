/**
 * `selvedge decode`: runs the firmware bridges on one payload, as the intake would, and shows readings, problems and
 * the entities a device seen for the first time would become. Nothing is written, no gateway is needed.
 */
