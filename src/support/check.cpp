#include "support/check.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace locution {
namespace {

std::vector<std::string>& scopes() {
  thread_local std::vector<std::string> stack;
  return stack;
}

// The one process-wide hook: a failing check has no caller that could pass it in.
std::function<std::string(const std::string&)>& reproducerWriter() {
  static std::function<std::string(const std::string&)> writer;
  return writer;
}

}  // namespace

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << "locution: internal error at " << file << ":" << line << ": " << condition;
  for (const std::string& scope : scopes()) stream_ << " [" << scope << "]";
  stream_ << " ";
}

CheckFailure::~CheckFailure() {
  static std::mutex once;
  thread_local bool failing = false;
  if (failing) std::_Exit(70);  // the reproducer writer itself failed a check
  failing = true;
  once.lock();  // never released: the first failure ends the process
  std::string text = stream_.str();
  std::fprintf(stderr, "%s\n", text.c_str());
  if (auto writer = std::exchange(reproducerWriter(), nullptr)) std::fprintf(stderr, "%s\n", writer(text).c_str());
  std::fflush(nullptr);
  std::_Exit(70);
}

CheckScope::CheckScope(std::string what) { scopes().push_back(std::move(what)); }
CheckScope::~CheckScope() { scopes().pop_back(); }

void setReproducerWriter(std::function<std::string(const std::string&)> writer) {
  reproducerWriter() = std::move(writer);
}

}  // namespace locution
