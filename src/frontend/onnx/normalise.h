// Declarations of the functions that onnx_ops.inc names. Each brings one node into internal form: op names and meaning of the newest
// opset, attributes that became inputs being inputs. Errors go without the node: the caller adds it.
#pragma once

#include "frontend/onnx/node_context.h"
#include "support/status.h"

namespace locution::frontend::normalise {

#define ONNX_OP(name, since, function, inputs, outputs, attributes) Status function(NodeContext& c);
#define MICROSOFT_OP(name, function, inputs, outputs, attributes) Status function(NodeContext& c);
#include "frontend/onnx/onnx_ops.inc"
#undef ONNX_OP
#undef MICROSOFT_OP

}  // namespace locution::frontend::normalise
