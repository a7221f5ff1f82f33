// Package cron answers one question, "when is the next time, exactly", because
// a scheduler that answers it almost right loses or doubles runs twice a year.
//
// # Syntax
//
// Five fields as crontab knows them, separated by blanks or tabs: minute 0-59,
// hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or
// SUN-SAT, where 0 and 7 are Sunday. A sixth field in front of them holds
// seconds. Names may be in any case. A field is a list of
//
//   - * or ?, and */n
//   - a, a-b, a-b/n, and a/n, which is a to the end of the range
//   - L, L-n, nW and LW in the day of month: the last day, n days before it,
//     the weekday nearest to the n-th inside the month, the last weekday
//   - d#n and dL in the day of week: the n-th and the last such day of the month
//   - H, H(a-b), H/n and H(a-b)/n: a value, or a phase, that is fixed for each
//     schedule by [Options].Salt; in the day of month H stays within 1-28
//
// The macros are @yearly, @annually, @monthly, @weekly, @daily, @midnight,
// @hourly, and @every with a duration. A CRON_TZ= or TZ= prefix is allowed
// where it repeats the zone in [Options].
//
// # Days
//
// If neither day field begins with a star, a day matches when either of them
// does; if one begins with a star or a question mark, both must. This is taken
// literally, as cronie takes it: */2 begins with a star, 1-31 does not.
//
// # Clock changes
//
// A schedule whose minute or hour field begins with a star is a wildcard
// schedule and follows real time: nothing in the gap of a spring change, both
// passes of the repeated hour. Any other is fixed to the wall clock: what the
// gap swallowed runs once, at the first minute after it (the first second, if
// there is a seconds field), and of a repeated hour the first pass counts.
// [Options] can say otherwise. A jump of more than three hours is a correction
// of the calendar: nothing is made up for and nothing held back.
//
// # Users of robfig/cron
//
// [Expression] is a robfig/cron/v3 Schedule. Every spec that its standard parser
// or its parser with optional seconds takes is taken here, except those that
//
//   - can never fire
//   - are longer than 256 characters or hold blanks other than space and tab
//   - name a zone other than that in [Options]; [SplitZone] takes it off
//   - have a duration of zero or less after @every
//   - hold what robfig passes over in silence: text behind a star (*-5), or a
//     field of nothing but commas
//
// The day rule and the clock changes differ from robfig as described above, and
// @every is counted as robfig counts it: from the time asked about, cut to the
// second.
package cron
