// Errors that the user or the environment can mend: a message with its context, carried by value.
// Invariant: no exception leaves Locution's code; third-party exceptions become a Status at the call.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "support/check.h"

namespace locution {

/// Success, or one message a person can act on. Context is added from the inside out with `withContext`.
class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status ok() { return {}; }
  static Status error(std::string message) {
    Status s;
    s.message_ = std::move(message);
    return s;
  }

  bool isOk() const { return !message_.has_value(); }
  explicit operator bool() const { return isOk(); }
  /// The message; empty when ok.
  const std::string& message() const {
    static const std::string kNone;
    return message_ ? *message_ : kNone;
  }
  /// "context: message"; ok stays ok.
  Status withContext(const std::string& context) const { return isOk() ? *this : error(context + ": " + *message_); }

 private:
  std::optional<std::string> message_;
};

/// A value or a Status that is not ok.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT
    LOCUTION_CHECK(!status_.isOk()) << "a Result without a value needs an error";
  }

  bool isOk() const { return value_.has_value(); }
  explicit operator bool() const { return isOk(); }
  const Status& status() const { return status_; }
  T& value() & {
    LOCUTION_CHECK(isOk()) << status_.message();
    return *value_;
  }
  const T& value() const& {
    LOCUTION_CHECK(isOk()) << status_.message();
    return *value_;
  }
  T&& value() && {
    LOCUTION_CHECK(isOk()) << status_.message();
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace locution

#define LOCUTION_CONCAT_INNER(a, b) a##b
#define LOCUTION_CONCAT(a, b) LOCUTION_CONCAT_INNER(a, b)
/// Returns from the function when `expr` (a Status) is an error.
#define LOCUTION_RETURN_IF_ERROR(expr)                   \
  do {                                                   \
    ::locution::Status locutionStatus_ = (expr);         \
    if (!locutionStatus_.isOk()) return locutionStatus_; \
  } while (0)
/// `LOCUTION_ASSIGN_OR_RETURN(auto x, f());`: unwraps a Result or returns its error.
#define LOCUTION_ASSIGN_OR_RETURN(lhs, expr) \
  LOCUTION_ASSIGN_OR_RETURN_INNER(LOCUTION_CONCAT(locutionResult_, __LINE__), lhs, expr)
#define LOCUTION_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp.isOk()) return tmp.status();                 \
  lhs = std::move(tmp).value()
