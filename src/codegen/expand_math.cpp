// Polynomials, quotients of them and range reductions for float32; coefficients are minimax fits, log's are Cephes' (S. Moshier).
// Few instructions and short chains come first: what limits such loops is how many of them a core can have under way. Written
// without fma calls: targets contract the products where they can, and the error bounds hold either way. No step reassociates.
#include "codegen/expand_math.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <unordered_map>
#include <utility>

#include "loop/build.h"
#include "loop/passes.h"

namespace locution::codegen {
namespace {

using loop::BinaryOp;
using loop::Expr;

Expr f32(double value) { return loop::floatImm(DType::F32, value); }
Expr i32(int64_t value) { return loop::intImm(DType::I32, value); }
Expr shiftLeft(Expr a, int64_t by) { return loop::binary(BinaryOp::Shl, std::move(a), i32(by)); }
Expr shiftRight(Expr a, int64_t by) { return loop::binary(BinaryOp::Shr, std::move(a), i32(by)); }

/// Names for values that are used more than once, in the order of their definition.
class Lets {
 public:
  Expr bind(const char* name, Expr value) {
    auto var = loop::makeVar(name, value->type);
    lets_.emplace_back(var, std::move(value));
    return var;
  }
  Expr wrap(Expr body) const {
    for (auto it = lets_.rbegin(); it != lets_.rend(); ++it) body = loop::let(it->first, it->second, std::move(body));
    return body;
  }

 private:
  std::vector<std::pair<loop::VarRef, Expr>> lets_;
};

/// Horner's scheme, highest power first.
Expr polynomial(const Expr& x, std::initializer_list<double> coefficients) {
  Expr sum;
  for (double c : coefficients) sum = sum ? sum * x + f32(c) : f32(c);
  return sum;
}

/// x = n * period + r, where `bits` are those of a float that is no more than n + bias above 1.5 * 2^23: its low bits are n + bias.
struct Reduced {
  Expr bits, r;
};
/// By the multiple of period = ln2 / parts (parts is a power of two, perhaps negative) that is nearest. With a bias of 127 + k,
/// bits << 23 is 2^(n + k).
Reduced byLn2(Lets& lets, const Expr& x, double parts, int64_t bias) {
  // The product of n and the first 15 bits of ln2 is exact; what is left of ln2 is positive, so that a zero keeps its sign.
  constexpr double kFirst = 0.693145751953125, kRest = 1.428606765330187045e-6, kInverse = 1.44269504088896341;
  auto shift = static_cast<double>(12582912 + bias);
  Expr shifted = lets.bind("shifted", x * f32(kInverse * parts) + f32(shift));
  Expr n = lets.bind("n", shifted - f32(shift));
  return {lets.bind("bits", loop::bitcast(DType::I32, shifted)),
          lets.bind("r", (x - n * f32(kFirst / parts)) - n * f32(kRest / parts))};
}
Expr powerOfTwo(Expr biased) { return loop::bitcast(DType::F32, shiftLeft(std::move(biased), 23)); }

/// (e^sr - 1) / r for |r| <= ln2 / 2 and s = 1 or -1, to 1.6 * 2^-24 of e^sr.
Expr expQuotient(const Expr& r, double s = 1) {
  return polynomial(r, {0.00828936044126749 * s, 0.04189817607402802, 0.16667652130126953 * s, 0.4999914765357971,
                        0.9999997019767761 * s});
}

/// Results may be denormal; scaling by a power of two after the sum 1 + (e^r - 1) costs nothing: it is the addend.
Expr expOf(Lets& lets, Expr x, bool isSmall) {
  constexpr double kLeast = -104, kMost = 89;
  x = loop::maxOf(std::move(x), f32(kLeast));
  if (isSmall) {
    // 2^n by way of 2^(n + 64), which is a normal number all over the range.
    Reduced d = byLn2(lets, lets.bind("x", std::move(x)), 1, 127 + 64);
    Expr power = lets.bind("power", powerOfTwo(d.bits));
    return (expQuotient(d.r) * (d.r * power) + power) * f32(0x1p-64);
  }
  // 2^n as the product of two: it may be denormal, or 2^128.
  Reduced d = byLn2(lets, lets.bind("x", loop::minOf(std::move(x), f32(kMost))), 1, 2 * 127);
  Expr half = lets.bind("half", shiftRight(d.bits, 1));
  Expr power = lets.bind("power", powerOfTwo(half));
  return (expQuotient(d.r) * (d.r * power) + power) * powerOfTwo(d.bits - half);
}

/// 1 / (1 + e^-x) with both sides of the fraction times 2^-64: nothing overflows, and small results are denormals.
Expr sigmoidOf(Lets& lets, const Expr& x) {
  // Past 40 the result is 1, under -104 it is 0.
  Expr y = lets.bind("y", loop::minOf(loop::maxOf(x, f32(-104)), f32(40)));
  Reduced d = byLn2(lets, y, -1, 127 - 64);
  Expr power = lets.bind("power", powerOfTwo(d.bits));
  return f32(0x1p-64) / ((expQuotient(d.r, -1) * (d.r * power) + power) + f32(0x1p-64));
}

/// (e^2x - 1) / (e^2x + 1), where e^2x - 1 = 2^n (e^2r - 1) - (1 - 2^n) loses nothing near 0.
Expr tanhOf(Lets& lets, const Expr& x) {
  constexpr double kOne = 9.02;  // tanh is 1 in float32 from here
  Expr y = lets.bind("y", loop::minOf(loop::maxOf(x, f32(-kOne)), f32(kOne)));
  Reduced d = byLn2(lets, y, 2, 127);
  Expr power = lets.bind("power", powerOfTwo(d.bits));
  Expr p = polynomial(
      d.r, {0.08877220749855042, 0.26772037148475647, 0.6666789650917053, 1.3333237171173096, 1.9999998807907104, 2});
  Expr e = lets.bind("e", p * d.r * power - (f32(1) - power));
  return e / (e + f32(2));
}

/// x P(x^2) / Q(x^2) with all coefficients positive; pairs of them at a time, for short chains and few roundings one after another.
Expr erfOf(Lets& lets, const Expr& x) {
  Expr z = lets.bind("z", loop::minOf(x * x, f32(16)));  // past 4 the quotient is over 1
  Expr z2 = lets.bind("z2", z * z);
  auto sum = [&](double c0, double c1, double c2, double c3, double c4, double c5) {
    return ((f32(c5) * z + f32(c4)) * z2 + (f32(c3) * z + f32(c2))) * z2 + (f32(c1) * z + f32(c0));
  };
  Expr p = sum(0x1.bb309cp+0, 0x1.2bbbf2p-2, 0x1.4bbf92p-4, 0x1.7c088p-8, 0x1.ca3148p-12, 0x1.a47d2cp-19);
  Expr q = sum(0x1.88c44ep+0, 0x1.8aa90ap-1, 0x1.67033p-3, 0x1.78fddep-6, 0x1.d4a4p-10, 0x1.e91ea4p-15);
  return loop::maxOf(loop::minOf((x * p) / q, f32(1)), f32(-1));
}

Expr logOf(Lets& lets, const Expr& x) {
  Expr tiny = lets.bind("tiny", loop::lt(x, f32(std::numeric_limits<float>::min())));
  Expr bits = lets.bind("bits", loop::bitcast(DType::I32, loop::select(tiny, x * f32(8388608), x)));
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  Expr power = lets.bind("power", shiftRight(bits - i32(0x3f3504f3), 23));
  Expr f = lets.bind("f", loop::bitcast(DType::F32, bits - shiftLeft(power, 23)) - f32(1));
  Expr zero = loop::broadcast(f32(0), x->type.lanes);
  Expr e =
      lets.bind("e", loop::cast(DType::F32, power) - loop::select(tiny, loop::broadcast(f32(23), x->type.lanes), zero));
  Expr z = lets.bind("z", f * f);
  Expr p = polynomial(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                          -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Expr tail = (p * f) * z + e * f32(-2.12194440e-4) - z * f32(0.5);
  Expr value = (f + tail) + e * f32(0.693359375);
  Expr infinity = f32(std::numeric_limits<double>::infinity());
  Expr finite = loop::select(loop::lt(x, infinity), value, x);
  auto wide = [&](double v) { return loop::broadcast(f32(v), x->type.lanes); };
  Expr outside = loop::select(loop::eq(x, f32(0)), wide(-std::numeric_limits<double>::infinity()), wide(std::nan("")));
  return loop::select(loop::lt(f32(0), x), finite, outside);
}

/// `x` where `e` is x or x broadcast.
const loop::FloatImm* constantOf(const Expr& e) {
  if (const auto* wide = loop::as<loop::Broadcast>(e)) return loop::as<loop::FloatImm>(wide->value);
  return loop::as<loop::FloatImm>(e);
}

/// The expression says itself that it is small: softmax's x - max(x) does.
bool isAtMost(const Expr& e, double bound) {
  const auto* b = loop::as<loop::Binary>(e);
  if (!b || b->op != BinaryOp::Min) return false;
  for (const Expr& side : {b->a, b->b})
    if (const auto* c = constantOf(side); c && c->value <= bound) return true;
  return false;
}

/// A quotient by a constant as a product. An error of the argument is no larger in erf, so that it stays within its bound.
Expr withoutDivision(const Expr& e) {
  const auto* b = loop::as<loop::Binary>(e);
  const auto* c = b && b->op == BinaryOp::Div ? constantOf(b->b) : nullptr;
  return c && std::isnormal(static_cast<float>(1 / c->value)) ? b->a * f32(1 / c->value) : e;
}

Expr expand(const std::string& name, Expr argument) {
  Lets lets;
  constexpr double kSmall = 40;
  bool isSmall = isAtMost(argument, kSmall);
  if (name == "erf") argument = withoutDivision(argument);
  Expr x = lets.bind("argument", std::move(argument));
  if (name == "exp") return lets.wrap(expOf(lets, x, isSmall));
  if (name == "sigmoid") return lets.wrap(sigmoidOf(lets, x));
  if (name == "tanh") return lets.wrap(tanhOf(lets, x));
  if (name == "erf") return lets.wrap(erfOf(lets, x));
  return lets.wrap(logOf(lets, x));
}

class ExpandMath : public loop::Mutator {
 public:
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    // Expressions are DAGs: a shared node is expanded once. Keeping the original alive keeps its address its own.
    auto it = done_.find(e);
    if (it != done_.end()) return it->second;
    Expr out = Mutator::mutate(e);
    if (const auto* call = loop::as<loop::Call>(out); call && isVectorFunction(call->name)) {
      DType type = call->type.dtype;
      if (type == DType::F32) {
        out = expand(call->name, call->args[0]);
      } else if (type != DType::F64) {
        out = loop::cast(type, expand(call->name, loop::cast(DType::F32, call->args[0])));
      } else if (call->name == "sigmoid") {
        out = sigmoid64(call->args[0]);
      }
    }
    done_.emplace(e, out);
    return out;
  }

 private:
  static bool isVectorFunction(const std::string& name) {
    return name == "exp" || name == "log" || name == "tanh" || name == "erf" || name == "sigmoid";
  }
  static Expr sigmoid64(const Expr& argument) {
    Lets lets;
    Expr x = lets.bind("argument", argument);
    auto f64 = [](double v) { return loop::floatImm(DType::F64, v); };
    Expr e = lets.bind("e", loop::call("exp", {f64(0) - loop::call("abs", {x})}));
    return lets.wrap(loop::select(loop::lt(x, f64(0)), e, loop::broadcast(f64(1), x->type.lanes)) / (e + f64(1)));
  }
  std::unordered_map<Expr, Expr> done_;
};

}  // namespace

loop::Function expandMath(const loop::Function& f) {
  loop::Function out = f;
  out.body = ExpandMath().mutate(f.body);
  return out;
}

}  // namespace locution::codegen
