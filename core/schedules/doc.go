// Package schedules is what users can do with schedules. It exists so that every
// way in, the API and whatever comes later, reads, plans and writes under the
// same guards and loses no slot.
package schedules
