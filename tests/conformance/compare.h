// As numpy.testing.assert_allclose: |got - want| <= atol + rtol * |want|, NaN equals NaN, infinities equal themselves.
#pragma once

#include "hostops/host_op.h"
#include "support/status.h"

namespace locution::conformance {

/// Form, dtype and shape must be equal. The message names the first element that is off, and how many are.
Status compareValues(const hostops::HostValue& got, const hostops::HostValue& want, double rtol, double atol);

}  // namespace locution::conformance
