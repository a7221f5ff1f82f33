package e2e_test

const roleVariable = "FENCEPOST_E2E_ROLE"

func runRole(string) int { return 1 }
