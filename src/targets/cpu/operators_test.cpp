// Every operator, conversion and intrinsic on every type, scalar and vector with a masked tail, against loop/scalar.h.
#include <functional>

#include "targets/cpu/kernel_test_util.h"

namespace locution::targets::cpu {
namespace {

using loop::BinaryOp;
using loop::Expr;

constexpr int64_t kCount = 1027;  // a multiple of no vector width

struct Case {
  std::string name;
  DType result;
  Expr value;
  std::function<loop::Word(loop::Word, loop::Word)> expected;
  double ulps = 0;
  bool signedZeros = true;
};

bool isBitwise(BinaryOp op) {
  return op == BinaryOp::And || op == BinaryOp::Or || op == BinaryOp::Xor || op == BinaryOp::Shl || op == BinaryOp::Shr;
}

/// One kernel for all cases of a type: out_k[i] = value_k(a[i], b[i]).
class Harness {
 public:
  Harness(const TargetSpec& target, DType type, int lanes, int64_t count)
      : target_(target), type_(type), lanes_(lanes), count_(count), loop_(count, lanes) {
    bufferA_ = loop::makeBuffer("a", {type, 1}, {count});
    bufferB_ = loop::makeBuffer("b", {type, 1}, {count});
  }
  Expr a() const { return loop::load(bufferA_, {loop_.at}, loop_.mask); }
  Expr b() const { return loop::load(bufferB_, {loop_.at}, loop_.mask); }
  void add(Case c) { cases_.push_back(std::move(c)); }

  void check(const Tensor& a, const Tensor& b) {
    loop::Function f;
    f.name = "operators";
    f.params = {bufferA_, bufferB_};
    std::vector<Tensor> params = {a, b};
    std::vector<loop::Stmt> stores;
    for (const Case& c : cases_) {
      auto out = loop::makeBuffer(c.name, {c.result, 1}, {count_});
      stores.push_back(loop::store(out, {loop_.at}, c.value, loop_.mask));
      f.params.push_back(out);
      params.emplace_back(c.result, std::vector<int64_t>{count_});
    }
    f.outputCount = cases_.size();
    f.body = loop_.over(loop::block(stores));
    if (!runKernel(target_, f, params)) return;
    for (size_t k = 0; k < cases_.size(); ++k) compare(cases_[k], a, b, params[k + 2]);
  }

 private:
  void compare(const Case& c, const Tensor& a, const Tensor& b, const Tensor& out) const {
    int shown = 0;
    for (int64_t i = 0; i < count_ && shown < 3; ++i) {
      loop::Word expected =
          loop::bitsToWord(c.result, loop::wordToBits(c.result, c.expected(wordAt(a, i), wordAt(b, i))));
      loop::Word actual = wordAt(out, i);
      if (sameWord(c.result, expected, actual, c.signedZeros)) continue;
      double gap = std::fabs(expected.f - actual.f);
      double unit = c.result == DType::F32   ? 0x1p-23
                    : c.result == DType::F64 ? 0x1p-52
                    : c.result == DType::F16 ? 0x1p-10
                                             : 0x1p-7;
      if (isFloat(c.result) && c.ulps > 0 && gap <= c.ulps * std::max(unit * std::fabs(expected.f), 0x1p-149)) continue;
      ++shown;
      ADD_FAILURE() << target_.cpu << " x" << lanes_ << " " << dtypeName(type_) << " " << c.name << " of 0x" << std::hex
                    << bitsAt(a, i) << ", 0x" << bitsAt(b, i) << ": 0x" << bitsAt(out, i) << ", expected 0x"
                    << loop::wordToBits(c.result, expected);
    }
  }

  TargetSpec target_;
  DType type_;
  int lanes_;
  int64_t count_;
  VectorLoop loop_;
  loop::BufferRef bufferA_, bufferB_;
  std::vector<Case> cases_;
};

int lanesOf(const TargetSpec& target, DType type) { return std::min(16, target.lanes(dtypeBits(type) / 8)); }

TEST(Operators, Binary) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType type : computeTypes()) {
      for (int lanes : {1, lanesOf(target, type)}) {
        Harness h(target, type, lanes, kCount);
        auto add = [&](BinaryOp op, const char* name) {
          if (isFloat(type) && isBitwise(op)) return;
          Case c{name, loop::isComparison(op) ? DType::Bool : type, loop::binary(op, h.a(), h.b()),
                 [op, type](loop::Word a, loop::Word b) { return loop::evalBinary(op, type, a, b); }};
          c.signedZeros = op != BinaryOp::Min && op != BinaryOp::Max && op != BinaryOp::FloorMod;
          h.add(c);
        };
#define BINARY_OP(Name, text) add(BinaryOp::Name, #Name);
#include "loop/nodes.inc"
#undef BINARY_OP
        h.check(interesting(type, kCount, 1), interesting(type, kCount, 2));
      }
    }
  }
}

// Division and shifts by constants take other paths than by variables.
TEST(Operators, ByConstant) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType type : {DType::I8, DType::I32, DType::I64, DType::U8, DType::U16, DType::U64}) {
      for (int lanes : {1, lanesOf(target, type)}) {
        Harness h(target, type, lanes, kCount);
        for (int64_t divisor : {0, 1, 2, 3, 7, 8, 64, 100, -1, -2, -3, -8}) {
          if (divisor < 0 && !isSignedInt(type)) continue;
          for (BinaryOp op :
               {BinaryOp::Div, BinaryOp::Mod, BinaryOp::FloorDiv, BinaryOp::FloorMod, BinaryOp::Shl, BinaryOp::Shr}) {
            h.add({"by" + std::to_string(divisor), type,
                   loop::binary(op, h.a(), loop::broadcast(loop::intImm(type, divisor), lanes)),
                   [op, type, divisor](loop::Word a, loop::Word) {
                     return loop::evalBinary(op, type, a, loop::wordOf(loop::wrapInt(type, divisor)));
                   }});
          }
        }
        h.check(interesting(type, kCount, 3), interesting(type, kCount, 4));
      }
    }
  }
}

TEST(Operators, MinMaxWithConstantKeepNan) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
      for (int lanes : {1, lanesOf(target, type)}) {
        Harness h(target, type, lanes, kCount);
        for (BinaryOp op : {BinaryOp::Min, BinaryOp::Max}) {
          for (double k : {0.0, 6.0, __builtin_inf(), __builtin_nan("")}) {
            Expr constant = loop::broadcast(loop::floatImm(type, k), lanes);
            auto expected = [op, type, k](loop::Word a, loop::Word) {
              return loop::evalBinary(op, type, a, loop::wordOf(k));
            };
            h.add({"right", type, loop::binary(op, h.a(), constant), expected, 0, false});
            h.add({"left", type, loop::binary(op, constant, h.a()), expected, 0, false});
          }
        }
        h.check(interesting(type, kCount, 5), interesting(type, kCount, 6));
      }
    }
  }
}

TEST(Operators, Casts) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType from : computeTypes()) {
      for (int lanes : {1, lanesOf(target, from)}) {
        // Small floats in full.
        bool inFull = isFloat(from) && (dtypeBits(from) == 8 || (dtypeBits(from) == 16 && lanes > 1));
        int64_t count = inFull ? (int64_t{1} << dtypeBits(from)) + 3 : kCount;
        Tensor a = interesting(from, count, 7);
        for (int64_t i = 0; inFull && i < count; ++i) setBits(a, i, static_cast<uint64_t>(i));
        Harness h(target, from, lanes, count);
        for (DType to : computeTypes()) {
          if (from == to) continue;
          h.add({std::string(dtypeName(to)), to, loop::cast(to, h.a()),
                 [from, to](loop::Word x, loop::Word) { return loop::evalCast(from, to, x); }});
        }
        h.check(a, interesting(from, count, 8));
      }
    }
  }
}

// Values around the rounding boundaries of the small types.
TEST(Operators, CastsRoundToEven) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType from : {DType::F32, DType::F64}) {
      std::vector<double> values;
      for (DType to : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2, DType::F8E5M2FNUZ}) {
        for (uint64_t bits = 0; bits < (dtypeBits(to) == 8 ? 128U : 32768U); bits += dtypeBits(to) == 8 ? 1 : 37) {
          double low = loop::bitsToWord(to, bits).f, high = loop::bitsToWord(to, bits + 1).f;
          if (!std::isfinite(low) || !std::isfinite(high)) continue;
          double middle = (low + high) / 2;
          for (double v : {middle, std::nextafter(middle, low), std::nextafter(middle, high), -middle}) {
            values.push_back(from == DType::F32 ? static_cast<double>(static_cast<float>(v)) : v);
          }
        }
      }
      auto count = static_cast<int64_t>(values.size());
      Tensor a(from, {count});
      for (int64_t i = 0; i < count; ++i)
        setBits(a, i, loop::wordToBits(from, loop::wordOf(values[static_cast<size_t>(i)])));
      Harness h(target, from, lanesOf(target, from), count);
      for (DType to : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ}) {
        h.add({std::string(dtypeName(to)), to, loop::cast(to, h.a()),
               [from, to](loop::Word x, loop::Word) { return loop::evalCast(from, to, x); }});
      }
      h.check(a, a);
    }
  }
}

TEST(Operators, Intrinsics) {
  for (const TargetSpec& target : runnableTargets()) {
    for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::F8E5M2, DType::I8, DType::I32,
                       DType::I64, DType::U16, DType::Bool}) {
      for (int lanes : {1, lanesOf(target, type)}) {
        Harness h(target, type, lanes, kCount);
        auto add = [&](const char* name, int arity, loop::IntrinsicGroup group) {
          if (group == loop::IntrinsicGroup::Hint) return;
          bool forInts = std::string_view(name) == "abs" || std::string_view(name) == "not" ||
                         std::string_view(name) == "popcount";
          bool forFloats = std::string_view(name) != "not" && std::string_view(name) != "popcount";
          const auto* facts = loop::findIntrinsic(name);
          if (facts->id == loop::Intrinsic::I_join) {
            if (!isInteger(type) || dtypeBits(type) > 16) return;
            forInts = true;
          }
          if (facts->id == loop::Intrinsic::I_madd16 || facts->id == loop::Intrinsic::I_dot4) {
            if (type != DType::I32) return;
            forInts = true;
          }
          if (std::string_view(name) == "bitcast" || !(isFloat(type) ? forFloats : forInts)) return;
          if (type == DType::Bool && std::string_view(name) != "not") return;
          if (std::string_view(name) == "fma" && type == DType::F64 && !target.hasFma) return;
          std::vector<Expr> args = {h.a(), h.b(), h.a()};
          args.resize(static_cast<size_t>(arity));
          auto id = loop::findIntrinsic(name)->id;
          Expr call = loop::call(name, args);
          DType result = call->type.dtype;
          Case c{name, result, call, [id, type, result](loop::Word a, loop::Word b) {
                   loop::Word words[3] = {a, b, a};
                   return loop::evalIntrinsic(id, type, result, words);
                 }};
          c.ulps = group == loop::IntrinsicGroup::Cheap ? 0 : 4;
          h.add(c);
        };
#define INTRINSIC(name, arity, group) add(#name, arity, loop::IntrinsicGroup::group);
#include "loop/intrinsics.inc"
#undef INTRINSIC
        h.check(interesting(type, kCount, 9), interesting(type, kCount, 10));
      }
    }
  }
}

TEST(Operators, Bitcast) {
  for (const TargetSpec& target : runnableTargets()) {
    for (auto [from, to] : {std::pair(DType::F32, DType::U32),
                            {DType::I64, DType::F64},
                            {DType::F16, DType::I16},
                            {DType::U8, DType::F8E4M3FN}}) {
      Harness h(target, from, lanesOf(target, from), kCount);
      h.add({"bitcast", to, loop::bitcast(to, h.a()), [from = from, to = to](loop::Word x, loop::Word) {
               return loop::bitsToWord(to, loop::wordToBits(from, x));
             }});
      h.check(interesting(from, kCount, 11), interesting(from, kCount, 12));
    }
  }
}

}  // namespace
}  // namespace locution::targets::cpu
