// Before code generation: what an innermost loop gets from outside becomes opaque to scalar evolution.
#pragma once

namespace llvm {
class FunctionPass;
}

namespace locution::targets::cpu {

/// Addresses and indices that a loop nest has hoisted out of an innermost loop are sums with an addend for each outer loop. Strength reduction
/// takes them apart again and tries every way to put them together, which takes most of the time of a compilation and finds nothing: they
/// were hoisted to where they belong. Each is frozen in the loop's preheader (an instruction that costs nothing and that nobody looks
/// through), less its constant offset, so that accesses at constant distances still share a register.
llvm::FunctionPass* createOpaqueBasesPass();

}  // namespace locution::targets::cpu
