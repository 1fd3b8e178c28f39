// The interpreter's instructions. Common types have handlers of their own; the rest goes through the scalar semantics, which
// also define what the fast ones compute.
#include <algorithm>
#include <cmath>

#include "loop/tape.h"

namespace locution::loop {
namespace {

using Ins = const Instruction;

// Element classes with a fast path.
struct F32Class {
  static double round(double v) { return static_cast<double>(static_cast<float>(v)); }
};
struct F64Class {
  static double round(double v) { return v; }
};

template <BinaryOp kOp, typename Class>
Ins* floatBinary(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) {
    double x = i->a[k].f, y = i->b[k].f;
    if constexpr (kOp == BinaryOp::Add)
      i->out[k].f = Class::round(x + y);
    else if constexpr (kOp == BinaryOp::Sub)
      i->out[k].f = Class::round(x - y);
    else if constexpr (kOp == BinaryOp::Mul)
      i->out[k].f = Class::round(x * y);
    else if constexpr (kOp == BinaryOp::Div)
      i->out[k].f = Class::round(x / y);
    else if constexpr (kOp == BinaryOp::Min)
      i->out[k].f = std::isnan(x) ? x : std::isnan(y) ? y : x < y ? x : y;
    else if constexpr (kOp == BinaryOp::Max)
      i->out[k].f = std::isnan(x) ? x : std::isnan(y) ? y : x > y ? x : y;
    else if constexpr (kOp == BinaryOp::Lt)
      i->out[k].i = x < y;
    else if constexpr (kOp == BinaryOp::Le)
      i->out[k].i = x <= y;
    else if constexpr (kOp == BinaryOp::Eq)
      i->out[k].i = x == y;
    else
      i->out[k].i = x != y;
  }
  return i + 1;
}

template <typename Class>
Handler floatHandler(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add:
      return floatBinary<BinaryOp::Add, Class>;
    case BinaryOp::Sub:
      return floatBinary<BinaryOp::Sub, Class>;
    case BinaryOp::Mul:
      return floatBinary<BinaryOp::Mul, Class>;
    case BinaryOp::Div:
      return floatBinary<BinaryOp::Div, Class>;
    case BinaryOp::Min:
      return floatBinary<BinaryOp::Min, Class>;
    case BinaryOp::Max:
      return floatBinary<BinaryOp::Max, Class>;
    case BinaryOp::Lt:
      return floatBinary<BinaryOp::Lt, Class>;
    case BinaryOp::Le:
      return floatBinary<BinaryOp::Le, Class>;
    case BinaryOp::Eq:
      return floatBinary<BinaryOp::Eq, Class>;
    case BinaryOp::Ne:
      return floatBinary<BinaryOp::Ne, Class>;
    default:
      return nullptr;
  }
}

template <BinaryOp kOp>
Ins* intBinary(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) {
    int64_t x = i->a[k].i, y = i->b[k].i;
    auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
    int64_t& r = i->out[k].i;
    if constexpr (kOp == BinaryOp::Add)
      r = static_cast<int64_t>(ux + uy);
    else if constexpr (kOp == BinaryOp::Sub)
      r = static_cast<int64_t>(ux - uy);
    else if constexpr (kOp == BinaryOp::Mul)
      r = static_cast<int64_t>(ux * uy);
    else if constexpr (kOp == BinaryOp::Min)
      r = x < y ? x : y;
    else if constexpr (kOp == BinaryOp::Max)
      r = x > y ? x : y;
    else if constexpr (kOp == BinaryOp::And)
      r = x & y;
    else if constexpr (kOp == BinaryOp::Or)
      r = x | y;
    else if constexpr (kOp == BinaryOp::Lt)
      r = x < y;
    else if constexpr (kOp == BinaryOp::Le)
      r = x <= y;
    else if constexpr (kOp == BinaryOp::Eq)
      r = x == y;
    else if constexpr (kOp == BinaryOp::Ne)
      r = x != y;
  }
  return i + 1;
}

// Floor division and remainder of int64 by what is positive most of the time.
Ins* floorDivI64(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) {
    int64_t x = i->a[k].i, y = i->b[k].i;
    i->out[k].i = x >= 0 && y > 0 ? x / y : evalBinary(BinaryOp::FloorDiv, DType::I64, i->a[k], i->b[k]).i;
  }
  return i + 1;
}
Ins* floorModI64(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) {
    int64_t x = i->a[k].i, y = i->b[k].i;
    i->out[k].i = x >= 0 && y > 0 ? x % y : evalBinary(BinaryOp::FloorMod, DType::I64, i->a[k], i->b[k]).i;
  }
  return i + 1;
}

Ins* anyBinary(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k)
    i->out[k] = evalBinary(static_cast<BinaryOp>(i->aux), i->type, i->a[k], i->b[k]);
  return i + 1;
}

Ins* anyCast(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) i->out[k] = evalCast(i->type, i->result, i->a[k]);
  return i + 1;
}
Ins* intToF32(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) i->out[k].f = static_cast<double>(static_cast<float>(i->a[k].i));
  return i + 1;
}

Ins* intrinsic(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) {
    Word args[3] = {i->a[k], i->b ? i->b[k] : Word{}, i->c ? i->c[k] : Word{}};
    i->out[k] = evalIntrinsic(static_cast<Intrinsic>(i->aux), i->type, i->result, args);
  }
  return i + 1;
}

Ins* broadcast(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) i->out[k] = *i->a;
  return i + 1;
}
Ins* copy(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) i->out[k] = i->a[k];
  return i + 1;
}
Ins* ramp(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k)
    i->out[k].i = wrapInt(i->type, static_cast<int64_t>(static_cast<uint64_t>(i->a->i) +
                                                        static_cast<uint64_t>(k) * static_cast<uint64_t>(i->b->i)));
  return i + 1;
}
Ins* selectLanes(Ins* i, Machine&) {
  for (int32_t k = 0; k < i->lanes; ++k) i->out[k] = i->a[k].i ? i->b[k] : i->c[k];
  return i + 1;
}
Ins* reduce(Ins* i, Machine&) {
  std::vector<Word> v(i->a, i->a + i->lanes);
  for (size_t n = v.size(); n > 1;) {
    size_t half = (n + 1) / 2;
    for (size_t k = 0; k + half < n; ++k) v[k] = evalBinary(static_cast<BinaryOp>(i->aux), i->type, v[k], v[k + half]);
    n = half;
  }
  *i->out = v[0];
  return i + 1;
}

__attribute__((noinline, cold)) int64_t outside(const AccessPlan& p, size_t dim, int64_t x, Machine& m) {
  m.error = "index " + std::to_string(x) + " of dim " + std::to_string(dim) + " of buffer " + p.buffer->buffer->name +
            " is outside its extent " + std::to_string(p.indices[dim].extent);
  return -1;
}

/// The element that lane `lane` of an access names, or -1 after noting the error.
inline int64_t elementOf(const AccessPlan& p, int64_t lane, Machine& m) {
  int64_t element = 0;
  for (const IndexPlan& d : p.indices) {
    int64_t x = d.at[lane * d.step].i;
    if (static_cast<uint64_t>(x) >= static_cast<uint64_t>(d.extent))
      return outside(p, static_cast<size_t>(&d - p.indices.data()), x, m);
    element += x * d.stride;
  }
  return element;
}

/// Bytes of a parameter as values, by storage type.
template <DType kType>
struct Memory {
  static Word get(const std::byte* p, DType type, int64_t i) {
    if constexpr (kType == DType::F32)
      return wordOf(double(reinterpret_cast<const float*>(p)[i]));
    else if constexpr (kType == DType::I64)
      return wordOf(reinterpret_cast<const int64_t*>(p)[i]);
    else {
      int bits = dtypeBits(type);
      if (bits < 8) {
        auto byte = static_cast<unsigned>(p[i * bits / 8]);
        return bitsToWord(type, (byte >> (i * bits % 8)) & ((1u << bits) - 1));
      }
      uint64_t raw = 0;
      __builtin_memcpy(&raw, p + i * (bits / 8), static_cast<size_t>(bits / 8));
      return bitsToWord(type, raw);
    }
  }
  static void set(std::byte* p, DType type, int64_t i, Word w) {
    if constexpr (kType == DType::F32)
      reinterpret_cast<float*>(p)[i] = static_cast<float>(w.f);
    else if constexpr (kType == DType::I64)
      reinterpret_cast<int64_t*>(p)[i] = w.i;
    else {
      int bits = dtypeBits(type);
      uint64_t raw = wordToBits(type, w);
      if (bits < 8) {
        std::byte& byte = p[i * bits / 8];
        auto shift = static_cast<unsigned>(i * bits % 8);
        unsigned mask = ((1u << bits) - 1) << shift;
        byte = static_cast<std::byte>((static_cast<unsigned>(byte) & ~mask) |
                                      ((static_cast<unsigned>(raw) << shift) & mask));
      } else {
        __builtin_memcpy(p + i * (bits / 8), &raw, static_cast<size_t>(bits / 8));
      }
    }
  }
};
// Any type but the two above.
constexpr DType kAnyType = DType::U8;

template <DType kType>
Ins* loadBytes(Ins* i, Machine& m) {
  const AccessPlan& p = *i->access;
  for (int k = 0; k < p.lanes; ++k) {
    if (p.mask && !p.mask[k].i) {
      i->out[k].i = 0;  // also +0.0
      continue;
    }
    int64_t element = elementOf(p, k, m);
    if (element < 0) return nullptr;
    i->out[k] = Memory<kType>::get(p.buffer->bytes, p.buffer->dtype, element);
  }
  return i + 1;
}

template <DType kType>
Ins* storeBytes(Ins* i, Machine& m) {
  const AccessPlan& p = *i->access;
  if (m.stepsLeft >= 0 && m.stepsLeft-- == 0) return m.error = "more stores than allowed", nullptr;
  for (int k = 0; k < p.lanes; ++k) {
    if (p.mask && !p.mask[k].i) continue;
    int64_t element = elementOf(p, k, m);
    if (element < 0) return nullptr;
    Memory<kType>::set(p.buffer->bytes, p.buffer->dtype, element, i->a[k]);
  }
  return i + 1;
}

Ins* loadWords(Ins* i, Machine& m) {
  const AccessPlan& p = *i->access;
  bool whole = p.buffer->lanes > 1;
  for (int k = 0; k < p.lanes; ++k) {
    if (p.mask && !p.mask[k].i) {
      i->out[k].i = 0;
      continue;
    }
    int64_t element = elementOf(p, k, m);
    if (element < 0) return nullptr;
    i->out[k] = p.buffer->words[static_cast<size_t>(whole ? element * p.lanes + k : element)];
  }
  return i + 1;
}

Ins* storeWords(Ins* i, Machine& m) {
  const AccessPlan& p = *i->access;
  bool whole = p.buffer->lanes > 1;
  if (m.stepsLeft >= 0 && m.stepsLeft-- == 0) return m.error = "more stores than allowed", nullptr;
  for (int k = 0; k < p.lanes; ++k) {
    if (p.mask && !p.mask[k].i) continue;
    int64_t element = elementOf(p, k, m);
    if (element < 0) return nullptr;
    p.buffer->words[static_cast<size_t>(whole ? element * p.lanes + k : element)] = i->a[k];
  }
  return i + 1;
}

// Uninitialised memory reads as NaN, or as an unlikely integer.
Ins* poison(Ins* i, Machine&) {
  BufferPlan& b = *i->access->buffer;
  Word bad = isFloat(b.dtype) ? wordOf(std::nan("")) : wordOf(wrapInt(b.dtype, int64_t{0x5bad5bad5bad5bad}));
  std::fill(b.words.begin(), b.words.end(), bad);
  return i + 1;
}

Ins* jump(Ins* i, Machine&) { return i + i->target; }
Ins* jumpIfFalse(Ins* i, Machine&) { return i->a->i ? i + 1 : i + i->target; }
Ins* loopBegin(Ins* i, Machine&) {
  i->out[0].i = i->a->i;
  i->out[1].i = static_cast<int64_t>(static_cast<uint64_t>(i->a->i) + static_cast<uint64_t>(i->b->i));
  return i->b->i > 0 ? i + 1 : i + i->target;
}
Ins* loopNext(Ins* i, Machine&) { return ++i->out[0].i < i->out[1].i ? i + i->target : i + 1; }
Ins* stop(Ins*, Machine&) { return nullptr; }

}  // namespace

Handler binaryHandler(BinaryOp op, DType type) {
  Handler h = nullptr;
  if (type == DType::F32) h = floatHandler<F32Class>(op);
  if (type == DType::F64) h = floatHandler<F64Class>(op);
  if (!isFloat(type)) {
    bool i64 = type == DType::I64, u64 = type == DType::U64;
    switch (op) {
      case BinaryOp::Add:
        h = i64 ? intBinary<BinaryOp::Add> : nullptr;
        break;
      case BinaryOp::Sub:
        h = i64 ? intBinary<BinaryOp::Sub> : nullptr;
        break;
      case BinaryOp::Mul:
        h = i64 ? intBinary<BinaryOp::Mul> : nullptr;
        break;
      case BinaryOp::FloorDiv:
        h = i64 ? floorDivI64 : nullptr;
        break;
      case BinaryOp::FloorMod:
        h = i64 ? floorModI64 : nullptr;
        break;
      case BinaryOp::Min:
        h = u64 ? nullptr : intBinary<BinaryOp::Min>;
        break;
      case BinaryOp::Max:
        h = u64 ? nullptr : intBinary<BinaryOp::Max>;
        break;
      case BinaryOp::Lt:
        h = u64 ? nullptr : intBinary<BinaryOp::Lt>;
        break;
      case BinaryOp::Le:
        h = u64 ? nullptr : intBinary<BinaryOp::Le>;
        break;
      case BinaryOp::And:
        h = intBinary<BinaryOp::And>;
        break;
      case BinaryOp::Or:
        h = intBinary<BinaryOp::Or>;
        break;
      case BinaryOp::Eq:
        h = intBinary<BinaryOp::Eq>;
        break;
      case BinaryOp::Ne:
        h = intBinary<BinaryOp::Ne>;
        break;
      default:
        break;
    }
  }
  return h ? h : anyBinary;
}
Handler castHandler(DType from, DType to) {
  return !isFloat(from) && from != DType::U64 && to == DType::F32 ? intToF32 : anyCast;
}
Handler intrinsicHandler() { return intrinsic; }
Handler broadcastHandler() { return broadcast; }
Handler copyHandler() { return copy; }
Handler rampHandler() { return ramp; }
Handler selectHandler() { return selectLanes; }
Handler reduceHandler() { return reduce; }
Handler loadHandler(const AccessPlan& p) {
  if (!p.buffer->bytes) return loadWords;
  return p.buffer->dtype == DType::F32   ? loadBytes<DType::F32>
         : p.buffer->dtype == DType::I64 ? loadBytes<DType::I64>
                                         : loadBytes<kAnyType>;
}
Handler storeHandler(const AccessPlan& p) {
  if (!p.buffer->bytes) return storeWords;
  return p.buffer->dtype == DType::F32   ? storeBytes<DType::F32>
         : p.buffer->dtype == DType::I64 ? storeBytes<DType::I64>
                                         : storeBytes<kAnyType>;
}
Handler poisonHandler() { return poison; }
Handler jumpHandler() { return jump; }
Handler jumpIfFalseHandler() { return jumpIfFalse; }
Handler loopBeginHandler() { return loopBegin; }
Handler loopNextHandler() { return loopNext; }
Handler stopHandler() { return stop; }

}  // namespace locution::loop
