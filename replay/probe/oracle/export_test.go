package oracle

// VerifyMethod is what VerifyMethods does for each method.
var VerifyMethod = verifyMethod
