// LOCUTION_CHECK: our own bugs. Always on; prints the place, the condition and the pass under way, then ends the process
// with exit code 70 (EX_SOFTWARE) after the registered reproducer writer ran.
#pragma once

#include <functional>
#include <sstream>
#include <string>

namespace locution {

/// Collects the message of a failed check and ends the process when destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  template <typename T>
  CheckFailure& operator<<(const T& value) {
    stream_ << value;
    return *this;
  }

 private:
  std::ostringstream stream_;
};

/// While alive, a failed check on this thread says what was under way ("pass fold-constants", "kernel conv_3").
class CheckScope {
 public:
  explicit CheckScope(std::string what);
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;
};

/// Called once, with the failure's text, before the process ends: writes a reproducer and returns what to print about it.
void setReproducerWriter(std::function<std::string(const std::string&)> writer);

}  // namespace locution

// `switch` swallows the dangling else, so that the macro can stand in an unbraced if; the else branch takes `<<`.
#define LOCUTION_CHECK(condition)             \
  switch (0)                                  \
  case 0:                                     \
  default:                                    \
    if (__builtin_expect(!!(condition), 1)) { \
    } else /* NOLINT */                       \
      ::locution::CheckFailure(__FILE__, __LINE__, #condition)
