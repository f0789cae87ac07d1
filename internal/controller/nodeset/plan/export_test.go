package plan

// MaxSnapshotAge exports maxSnapshotAge to tests.
const MaxSnapshotAge = maxSnapshotAge

// MaxAbsenceAge exports maxAbsenceAge to tests.
const MaxAbsenceAge = maxAbsenceAge
