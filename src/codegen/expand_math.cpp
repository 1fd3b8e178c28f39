// Polynomials and range reductions for float32. Sources: Cephes (exp, log, tanh; S. Moshier), N. Juffa's erff. Written without
// fma calls: targets contract the products where they can, and the error bounds hold either way. No step reassociates.
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

/// e^x = 2^n * e^r with r in [-ln2/2, ln2/2]. `bounded`: x is known to lie in [-87, 88], where 2^n is a normal number.
Expr expOf(Lets& lets, Expr x, bool bounded) {
  if (!bounded) x = lets.bind("x", loop::minOf(loop::maxOf(std::move(x), f32(-104)), f32(89)));
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
  Expr shifted = lets.bind("shifted", x * f32(1.44269504088896341) + f32(12582912));
  Expr n = lets.bind("n", shifted - f32(12582912));
  Expr r = lets.bind("r", (x - n * f32(0.693359375)) - n * f32(-2.12194440e-4));
  Expr p = polynomial(
      r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Expr y = (p * (r * r) + r) + f32(1);
  Expr power = lets.bind("power", loop::bitcast(DType::I32, shifted) - i32(0x4B400000));
  auto twoTo = [](Expr e) { return loop::bitcast(DType::F32, shiftLeft(std::move(e) + i32(127), 23)); };
  if (bounded) return y * twoTo(power);
  // In two steps: results may be denormal, and 2^128 isn't a float.
  Expr half = lets.bind("half", shiftRight(power, 1));
  return (y * twoTo(half)) * twoTo(power - half);
}

Expr expand(const std::string& name, Expr argument) {
  Lets lets;
  Expr x = lets.bind("argument", std::move(argument));
  if (name == "exp") return lets.wrap(expOf(lets, x, false));
  if (name == "sigmoid") {
    // 1 / (1 + e^-x), with an exponent that can't overflow.
    Expr e = lets.bind("e", expOf(lets, f32(0) - loop::call("abs", {x}), false));
    return lets.wrap(loop::select(loop::lt(x, f32(0)), e, loop::broadcast(f32(1), x->type.lanes)) / (e + f32(1)));
  }
  if (name == "log") {
    Expr tiny = lets.bind("tiny", loop::lt(x, f32(std::numeric_limits<float>::min())));
    Expr bits = lets.bind("bits", loop::bitcast(DType::I32, loop::select(tiny, x * f32(8388608), x)));
    // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
    Expr power = lets.bind("power", shiftRight(bits - i32(0x3f3504f3), 23));
    Expr f = lets.bind("f", loop::bitcast(DType::F32, bits - shiftLeft(power, 23)) - f32(1));
    Expr zero = loop::broadcast(f32(0), x->type.lanes);
    Expr e = lets.bind(
        "e", loop::cast(DType::F32, power) - loop::select(tiny, loop::broadcast(f32(23), x->type.lanes), zero));
    Expr z = lets.bind("z", f * f);
    Expr p = polynomial(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                            -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    Expr tail = (p * f) * z + e * f32(-2.12194440e-4) - z * f32(0.5);
    Expr value = (f + tail) + e * f32(0.693359375);
    Expr infinity = f32(std::numeric_limits<double>::infinity());
    Expr finite = loop::select(loop::lt(x, infinity), value, x);
    auto wide = [&](double v) { return loop::broadcast(f32(v), x->type.lanes); };
    Expr outside =
        loop::select(loop::eq(x, f32(0)), wide(-std::numeric_limits<double>::infinity()), wide(std::nan("")));
    return lets.wrap(loop::select(loop::lt(f32(0), x), finite, outside));
  }
  Expr t = lets.bind("magnitude", loop::call("abs", {x}));
  auto withSign = [&](Expr value) {
    Expr sign = loop::binary(BinaryOp::And, loop::bitcast(DType::I32, x), i32(std::numeric_limits<int32_t>::min()));
    return loop::bitcast(DType::F32, loop::binary(BinaryOp::Or, loop::bitcast(DType::I32, std::move(value)), sign));
  };
  if (name == "tanh") {
    Expr e = expOf(lets, lets.bind("twice", loop::minOf(t, f32(10)) * f32(2)), true);
    Expr far = withSign(f32(1) - f32(2) / (e + f32(1)));
    Expr z = lets.bind("z", x * x);
    Expr p =
        polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
    return lets.wrap(loop::select(loop::lt(t, f32(0.625)), (p * z) * x + x, far));
  }
  // erf; past 4 it is 1 in float32.
  Expr c = lets.bind("clamped", loop::minOf(t, f32(4)));
  Expr s = lets.bind("s", c * c);
  Expr r = f32(-1.72853470e-5) * c + f32(3.83197126e-4);
  Expr u = f32(-3.88396438e-3) * c + f32(2.42546219e-2);
  r = lets.bind("p", r * s + u);
  for (double k : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1}) r = r * c + f32(k);
  r = lets.bind("exponent", r * c - c);
  Expr far = withSign(f32(1) - expOf(lets, r, true));
  Expr p = polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  return lets.wrap(loop::select(loop::lt(f32(0.927734375), t), far, p * x + x));
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
