package plan

// MaxSnapshotAge is known to tests.
const MaxSnapshotAge = maxSnapshotAge
