#include "support/child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "support/check.h"

namespace locution {
namespace {

using How = ChildEnd::How;

TEST(RunInChild, BringsTheResultBack) {
  const std::string large(1 << 20, 'x');
  ChildEnd end = runInChild(60, [&] { return large; });
  EXPECT_EQ(end.how, How::Finished);
  EXPECT_EQ(end.text, large);
}

TEST(RunInChild, NamesASignalAFailedCheckAndMemory) {
  ChildEnd signalled = runInChild(60, []() -> std::string {
    std::raise(SIGKILL);
    return "";
  });
  EXPECT_EQ(signalled.how, How::Crashed);
  EXPECT_EQ(signalled.text, "Killed");
  ChildEnd checked = runInChild(60, []() -> std::string {
    LOCUTION_CHECK(false) << "on purpose";
    return "";
  });
  EXPECT_EQ(checked.how, How::Crashed);
  EXPECT_NE(checked.text.find("exit code 70"), std::string::npos) << checked.text;
  EXPECT_NE(checked.text.find("on purpose"), std::string::npos) << checked.text;
  ChildEnd hungry = runInChild(60, []() -> std::string { throw std::bad_alloc(); });
  EXPECT_EQ(hungry.text, "exit code 1: not enough memory\n");
}

TEST(RunInChild, EndsWhatHangs) {
  EXPECT_EQ(runInChild(1,
                       []() -> std::string {
                         for (;;) pause();
                       })
                .how,
            How::TimedOut);
}

}  // namespace
}  // namespace locution
