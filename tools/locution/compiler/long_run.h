// What commands that run for hours have in common: they can be interrupted, and say how long it still takes.
#pragma once

#include <csignal>
#include <string>

namespace locution::tools {

/// Ctrl-C: what is being measured is still stored. Twice: at once.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  /// Whether one has come.
  static bool met();

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// "42 s", "3 min 5 s", "2 h 10 min".
std::string duration(double seconds);

}  // namespace locution::tools
