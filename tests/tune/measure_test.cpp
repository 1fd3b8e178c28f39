// Measuring on this machine's compiler: what is right gets times; what is wrong, crashes, hangs or is illegal gets that outcome and
// disturbs nothing else. Bad code comes from a compiler that spoils the functions it is told to.
#include "tune/measure.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>

#include "generator/scheduler.h"
#include "loop/build.h"
#include "loop/passes.h"
#include "schedule/apply.h"
#include "targets/cpu/cpu_target.h"

namespace locution::tune {
namespace {

using namespace loop;  // NOLINT: tests about loop IR

constexpr int64_t kFar = 1 << 26;  // elements: beyond any margin

/// out[i, j] = max(0, sum a[i, k] * b[k, j])
Computation product(int64_t m, int64_t n, int64_t k) {
  BufferRef a = makeBuffer("a", {DType::F32, 1}, {m, k}), b = makeBuffer("b", {DType::F32, 1}, {k, n});
  Stage s;
  s.out = makeBuffer("out", {DType::F32, 1}, {m, n});
  s.axes = {{makeVar("i"), m}, {makeVar("j"), n}};
  s.reduce = {{makeVar("k"), k}};
  s.combiner = Combiner::Sum;
  s.body = load(a, {s.axes[0].var, s.reduce[0].var}) * load(b, {s.reduce[0].var, s.axes[1].var});
  s.acc = makeVar("acc", {DType::F32, 1});
  s.epilogue = maxOf(s.acc, floatImm(DType::F32, 0));
  return {"product", {a, b}, {b}, {s.out}, {s}, nullptr};
}

/// out[i, c] = table[index[i] + shift, c]
Computation gather(int64_t rows, int64_t count, const std::function<Expr(Expr)>& at) {
  BufferRef table = makeBuffer("table", {DType::F32, 1}, {rows, 8}),
            index = makeBuffer("index", {DType::I64, 1}, {count});
  Stage s;
  s.out = makeBuffer("out", {DType::F32, 1}, {count, 8});
  s.axes = {{makeVar("i"), count}, {makeVar("c"), 8}};
  s.body = load(table, {at(load(index, {s.axes[0].var})), s.axes[1].var});
  return {"gather", {table, index}, {}, {s.out}, {s}, nullptr};
}

/// out[n, y, x, o] = sum in[n, y + i - 1, x + j - 1, c] * w[o, c, i, j], zero outside
Computation convolution(int64_t size, int64_t channels) {
  BufferRef in = makeBuffer("in", {DType::F32, 1}, {1, size, size, channels});
  BufferRef w = makeBuffer("w", {DType::F32, 1}, {channels, channels, 3, 3});
  Stage s;
  s.out = makeBuffer("out", {DType::F32, 1}, {1, size, size, channels});
  for (int64_t extent : {int64_t{1}, size, size, channels})
    s.axes.push_back({makeVar("i" + std::to_string(s.axes.size())), extent});
  for (int64_t extent : {int64_t{3}, int64_t{3}, channels})
    s.reduce.push_back({makeVar("r" + std::to_string(s.reduce.size())), extent});
  s.combiner = Combiner::Sum;
  Expr y = Expr(s.axes[1].var) + Expr(s.reduce[0].var) - 1, x = Expr(s.axes[2].var) + Expr(s.reduce[1].var) - 1;
  auto within = [&](const Expr& e) { return logicalAnd(le(index(0), e), lt(e, index(size))); };
  Expr value = select(logicalAnd(within(y), within(x)), load(in, {s.axes[0].var, y, x, s.reduce[2].var}),
                      floatImm(DType::F32, 0));
  s.body = value * load(w, {s.axes[3].var, s.reduce[2].var, s.reduce[0].var, s.reduce[1].var});
  return {"convolution", {in, w}, {w}, {s.out}, {s}, nullptr};
}

class MeasureTest : public testing::Test {
 protected:
  MeasureTest()
      : target_(*targets::cpu::makeTarget("", "native", 1)),
        compiler_(targets::cpu::makeKernelCompiler(target_)),
        scheduler_(generator::makeAnalytic()) {}

  schedule::Plan analytic(const Computation& c) const { return scheduler_->propose(c, target_); }
  static schedule::Plan planOf(const std::string& text) {
    auto plan = schedule::parsePlan(text);
    EXPECT_TRUE(plan.isOk()) << text;
    return *plan;
  }
  static MeasureOptions quick() {
    MeasureOptions o;
    o.secondsEach = 0.002;
    o.watchdogSeconds = 2;
    o.compileSeconds = 20;
    return o;
  }

  TargetSpec target_;
  std::unique_ptr<codegen::KernelCompiler> compiler_;
  std::unique_ptr<generator::Scheduler> scheduler_;
};

// Compiles something else in place of a plan's function.
class SpoilingCompiler : public codegen::KernelCompiler {
 public:
  explicit SpoilingCompiler(const codegen::KernelCompiler& inner) : inner_(inner) {}
  void spoil(const Computation& c, const schedule::Plan& plan, std::function<Function(const Function&)> how) {
    auto lowered = schedule::apply(c, plan);
    ASSERT_TRUE(std::holds_alternative<schedule::Lowered>(lowered));
    spoilt_[loop::hash(std::get<schedule::Lowered>(lowered).function)] = std::move(how);
  }
  Result<codegen::KernelCode> compile(const Function& f) const override {
    auto it = spoilt_.find(loop::hash(f));
    return inner_.compile(it == spoilt_.end() ? f : it->second(f));
  }
  Result<std::string> show(const Function& f, const std::string& stage) const override { return inner_.show(f, stage); }
  const TargetSpec& target() const override { return inner_.target(); }

 private:
  const codegen::KernelCompiler& inner_;
  std::map<uint64_t, std::function<Function(const Function&)>> spoilt_;
};

// A statement after the function's own.
Function andThen(const Function& f, const std::function<Stmt(const BufferRef& out)>& what) {
  Function g = f;
  g.parallelExtent = 1;
  struct Serial : Mutator {
    using Mutator::mutate;
    Stmt mutate(const Stmt& s) override {
      Stmt out = mutateChildren(s);
      const auto* l = as<For>(out);
      return l && l->loop == LoopKind::Parallel ? forLoop(l->var, l->min, l->extent, LoopKind::Serial, l->body) : out;
    }
  };
  g.body = block({Serial().mutate(f.body), what(f.params.back())});
  return g;
}

Function storingAt(const Function& f, int64_t row, int64_t column) {
  return andThen(f, [&](const BufferRef& out) {
    return store(out, {index(row), index(column)}, floatImm(DType::F32, 7));
  });
}

TEST_F(MeasureTest, RightPlansGetTimes) {
  Computation c = product(48, 64, 96);
  std::vector<schedule::Plan> plans = {analytic(c), {}, analytic(c)};
  auto out = Measurer(*compiler_, quick()).measure(c, plans);
  ASSERT_TRUE(out.isOk()) << out.status().message();
  ASSERT_EQ(out->size(), 3u);
  for (const Measurement& m : *out) {
    EXPECT_EQ(m.outcome, Outcome::Ok) << m.reason;
    ASSERT_FALSE(m.samples.empty());
    EXPECT_EQ(m.samples.size(), m.incumbent.size());
    EXPECT_GT(m.seconds, 0);
    EXPECT_GT(m.ratio, 0);
    EXPECT_GT(m.compileMs, 0);
  }
  EXPECT_EQ((*out)[0].codeHash, (*out)[2].codeHash);
  EXPECT_NE((*out)[0].codeHash, (*out)[1].codeHash);
  // Scalar loops against vectors and registers: nothing the machine does meanwhile turns that round.
  EXPECT_TRUE((*out)[1].abandoned);
  EXPECT_GT((*out)[1].ratio, 2);
  EXPECT_FALSE((*out)[0].abandoned);
  EXPECT_GE((*out)[0].samples.size(), 2u);
}

TEST_F(MeasureTest, IllegalPlansSayWhy) {
  Computation c = product(8, 16, 8);
  auto out = Measurer(*compiler_, quick()).measure(c, {analytic(c), planOf("split s0 i7 4 peel")});
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ((*out)[1].outcome, Outcome::Illegal);
  EXPECT_NE((*out)[1].reason.find("step 0"), std::string::npos) << (*out)[1].reason;
}

TEST_F(MeasureTest, BadCodeHarmsNothingElse) {
  Computation c = product(32, 32, 32);
  const std::vector<schedule::Plan> plans = {analytic(c),
                                             planOf("split s0 i0 2 peel"),
                                             planOf("split s0 i0 3 peel"),
                                             planOf("split s0 i0 4 peel"),
                                             planOf("split s0 i0 5 peel"),
                                             planOf("split s0 i0 6 peel"),
                                             planOf("split s0 i0 7 peel"),
                                             planOf("split s0 i0 8 peel")};
  SpoilingCompiler bad(*compiler_);
  bad.spoil(c, plans[1], [](const Function& f) { return storingAt(f, 3, 4); });
  bad.spoil(c, plans[2], [](const Function& f) { return storingAt(f, kFar, 0); });
  bad.spoil(c, plans[3], [](const Function& f) { return storingAt(f, 32, 1); });
  bad.spoil(c, plans[4], [](const Function& f) {
    return andThen(f, [](const BufferRef& out) {
      VarRef i = makeVar("i");
      return forLoop(i, index(0), index(int64_t{1} << 60), LoopKind::Serial,
                     store(out, {index(0), index(0)}, load(out, {index(0), index(0)}) * floatImm(DType::F32, 0.5)));
    });
  });
  bad.spoil(c, plans[5], [](const Function& f) -> Function {
    std::abort();
    return f;
  });
  bad.spoil(c, plans[6], [](const Function& f) {
    for (;;) usleep(1000);
    return f;
  });
  MeasureOptions options = quick();
  options.compileSeconds = 4;
  options.jobs = 2;
  auto out = Measurer(bad, options).measure(c, plans);
  ASSERT_TRUE(out.isOk()) << out.status().message();
  const std::vector<Outcome> want = {Outcome::Ok,      Outcome::Wrong, Outcome::Crash,   Outcome::Wrong,
                                     Outcome::Timeout, Outcome::Crash, Outcome::Timeout, Outcome::Ok};
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(outcomeName((*out)[i].outcome), outcomeName(want[i])) << i << ": " << (*out)[i].reason;
  EXPECT_NE((*out)[1].reason.find("element 100 is 7"), std::string::npos) << (*out)[1].reason;
  EXPECT_NE((*out)[3].reason.find("next to a buffer"), std::string::npos) << (*out)[3].reason;
}

TEST_F(MeasureTest, AWorkerEndsWithItsParent) {
  // What the parent leaves behind becomes this process's child.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    Computation c = product(8, 8, 8);
    SpoilingCompiler bad(*compiler_);
    const schedule::Plan plan = planOf("split s0 i0 2 peel");
    bad.spoil(c, plan, [&](const Function& f) {
      (void)!write(ready[1], "x", 1);
      sleep(100);
      return f;
    });
    MeasureOptions options = quick();
    options.compileSeconds = 100;
    (void)Measurer(bad, options).measure(c, {analytic(c), plan});
    _exit(0);
  }
  char text = 0;
  ASSERT_EQ(read(ready[0], &text, 1), 1);
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  int status = 0;
  ASSERT_GT(wait(&status), 0);  // hangs where the worker lives on
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  close(ready[0]);
  close(ready[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(MeasureTest, SlowRunsAreStoppedAndStillChecked) {
  Computation c = product(256, 64, 256);
  const schedule::Plan slow = planOf("parallel s0 i0"), wrong = planOf("split s0 i1 8 peel; parallel s0 i0");
  SpoilingCompiler bad(*compiler_);
  bad.spoil(c, wrong, [](const Function& f) {
    struct Other : Mutator {
      using Mutator::mutate;
      Stmt mutate(const Stmt& s) override {
        const auto* st = as<Store>(s);
        if (!st || st->buffer->name != "out") return mutateChildren(s);
        return store(st->buffer, st->indices, st->value + floatImm(DType::F32, 1));
      }
    };
    Function g = f;
    g.body = Other().mutate(f.body);
    return g;
  });
  auto out = Measurer(bad, quick()).measure(c, {analytic(c), slow, wrong});
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ((*out)[1].outcome, Outcome::Ok) << (*out)[1].reason;
  EXPECT_TRUE((*out)[1].abandoned);
  EXPECT_GT((*out)[1].ratio, 3);
  EXPECT_EQ((*out)[2].outcome, Outcome::Wrong);
}

TEST_F(MeasureTest, ABadIncumbentIsAnError) {
  Computation c = product(32, 32, 32);
  SpoilingCompiler bad(*compiler_);
  bad.spoil(c, analytic(c), [](const Function& f) { return storingAt(f, 31, 31); });
  auto out = Measurer(bad, quick()).measure(c, {analytic(c)});
  ASSERT_FALSE(out.isOk());
  EXPECT_NE(out.status().message().find("element 1023 is 7"), std::string::npos) << out.status().message();
}

TEST_F(MeasureTest, OutputsMustBeWritten) {
  Computation c = product(32, 32, 32);
  SpoilingCompiler bad(*compiler_);
  const schedule::Plan plan = planOf("split s0 i0 4 peel");
  bad.spoil(c, plan, [](const Function& f) {
    Function g = f;
    g.parallelExtent = 1;
    g.body = block({});
    return g;
  });
  auto out = Measurer(bad, quick()).measure(c, {analytic(c), plan});
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ((*out)[1].outcome, Outcome::Wrong);
}

TEST_F(MeasureTest, BatchesShareOneIncumbent) {
  Computation c = product(40, 48, 56);
  auto bench = Measurer(*compiler_, quick()).open(c, analytic(c));
  ASSERT_TRUE(bench.isOk()) << bench.status().message();
  for (int batch = 0; batch < 3; ++batch) {
    auto out = (*bench)->measure({planOf("split s0 i0 " + std::to_string(batch + 2) + " peel"), analytic(c)});
    ASSERT_TRUE(out.isOk()) << out.status().message();
    for (const Measurement& m : *out) EXPECT_EQ(m.outcome, Outcome::Ok) << m.reason;
  }
}

TEST_F(MeasureTest, PackedActivationsAndTwoThreads) {
  TargetSpec two = target_;
  two.threads = 2;
  auto compiler = targets::cpu::makeKernelCompiler(two);
  Computation c = convolution(24, 64);
  schedule::Plan plan = scheduler_->propose(c, two);
  ASSERT_NE(plan.str().find("winograd"), std::string::npos) << plan.str();
  auto out = Measurer(*compiler, quick()).measure(c, {plan, plan});
  ASSERT_TRUE(out.isOk()) << out.status().message();
  for (const Measurement& m : *out) EXPECT_EQ(m.outcome, Outcome::Ok) << m.reason;
}

TEST_F(MeasureTest, IndicesAreWithinWhatTheyIndex) {
  auto wrapped = [](const Expr& i) { return select(lt(i, index(0)), i + 100, i); };
  Computation c = gather(100, 1000, wrapped);
  auto out = Measurer(*compiler_, quick()).measure(c, {analytic(c)});
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ((*out)[0].outcome, Outcome::Ok) << (*out)[0].reason;

  Computation refused = gather(100, 1000, [](const Expr& i) { return i - 100; });
  auto error = Measurer(*compiler_, quick()).measure(refused, {analytic(refused)});
  ASSERT_FALSE(error.isOk());
  EXPECT_NE(error.status().message().find("valid indices of 'table'"), std::string::npos) << error.status().message();
}

TEST_F(MeasureTest, ChecksAgainstTheInterpreterAlone) {
  Computation c = convolution(7, 16);
  SpoilingCompiler bad(*compiler_);
  const schedule::Plan right = analytic(c), wrong = planOf("split s0 i1 2 peel");
  bad.spoil(c, wrong, [](const Function& f) {
    return andThen(f, [](const BufferRef& out) {
      std::vector<Expr> at = {index(0), index(6), index(0), index(15)};
      return store(out, at, load(out, at) * floatImm(DType::F32, 1.5));
    });
  });
  auto out = checkPlans(c, {right, wrong, {}, planOf("vectorise s0 i9")}, bad, 3);
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ((*out)[0].outcome, Outcome::Ok) << (*out)[0].reason;
  EXPECT_EQ((*out)[1].outcome, Outcome::Wrong);
  EXPECT_NE((*out)[1].reason.find("element 687 "), std::string::npos) << (*out)[1].reason;
  EXPECT_EQ((*out)[2].outcome, Outcome::Ok) << (*out)[2].reason;
  EXPECT_EQ((*out)[3].outcome, Outcome::Illegal);
  EXPECT_TRUE((*out)[0].samples.empty());
}

TEST_F(MeasureTest, SameSeedSameOperands) {
  Computation c = convolution(5, 8);
  SpoilingCompiler bad(*compiler_);
  const schedule::Plan plan = planOf("split s0 i1 4 peel");
  bad.spoil(c, plan, [](const Function& f) {
    return andThen(f, [](const BufferRef& out) {
      return store(out, {index(0), index(0), index(0), index(0)}, floatImm(DType::F32, 1e6));
    });
  });
  // The reason tells what the element should have been.
  auto reasonOf = [&](uint64_t seed) {
    auto out = checkPlan(c, plan, bad, seed);
    EXPECT_TRUE(out.isOk());
    return out->reason;
  };
  EXPECT_EQ(reasonOf(1), reasonOf(1));
  EXPECT_NE(reasonOf(1), reasonOf(2));
}

}  // namespace
}  // namespace locution::tune
