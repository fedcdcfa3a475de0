// SPDX-License-Identifier: Apache-2.0
#include "triax/error.hpp"

namespace triax {

namespace {

std::string sentence(const std::string& message, const std::string& where, const std::string& hint) {
  std::string out = where.empty() ? message : where + ": " + message;
  if (!hint.empty()) out += "\n  " + hint;
  return out;
}

// Also the source of docs/errors.md.
constexpr ErrorCodeInfo kCodes[] = {
    {ErrorCode::kUnsupported, "unsupported", "A plugin, a device or Triax cannot do what the configuration requests.",
     "Use another plugin or another value; the hint names one where there is one."},
    {ErrorCode::kNotDivisible, "not-divisible", "A size is not divisible by another size.",
     "Change one of the two sizes; the hint names the nearest sizes that fit."},
    {ErrorCode::kOutOfRange, "out-of-range", "A value is outside the range that its key, or another key, allows.",
     "Use a value in the range that the message names."},
    {ErrorCode::kWrongType, "wrong-type", "A value has another type than its key.",
     "Write the value as the message shows: an integer, a string in quotes, a list."},
    {ErrorCode::kInvalidValue, "invalid-value", "A value has the right type, but is not one of the allowed values.",
     "Use one of the values that the message or the hint lists."},
    {ErrorCode::kMalformed, "malformed", "A file or a text cannot be parsed.",
     "Correct the text at the line and column of the message."},
    {ErrorCode::kMissing, "missing", "A required key, name or flag is missing or empty.", "Add it."},
    {ErrorCode::kUnknownKey, "unknown-key", "No table or plugin has this key or table.",
     "Correct the name; the hint lists the names that exist."},
    {ErrorCode::kUnknownPlugin, "unknown-plugin", "No plugin of this name and kind is in the search path.",
     "Correct the name, or add the plugin's folder to `plugins.path` or `TRIAX_PLUGIN_PATH`."},
    {ErrorCode::kConflict, "conflict", "Two values, or a value and the environment, contradict each other.",
     "Change or remove one of them."},
    {ErrorCode::kDuplicate, "duplicate", "A name is given twice.", "Remove one of the two."},
    {ErrorCode::kTooLarge, "too-large", "A size is above a limit of Triax or of a plugin.", "Use a smaller size."},
    {ErrorCode::kNotFound, "not-found", "A file or folder does not exist.", "Correct the path, or create the file."},
    {ErrorCode::kNotReadable, "not-readable", "A file exists and cannot be read, or holds something else.",
     "Correct the path, the permissions or the file."},
    {ErrorCode::kNotWritable, "not-writable", "A file or folder cannot be written.",
     "Choose another path, or change the permissions."},
    {ErrorCode::kAlreadyExists, "already-exists", "An output exists; Triax does not overwrite it.",
     "Choose another name, or remove the old file if you do not need it."},
    {ErrorCode::kIncompatible, "incompatible", "A library was built for another version or toolchain.",
     "Build or install the version that the message names."},
    {ErrorCode::kOutOfMemory, "out-of-memory", "A rank or a machine needs more memory than there is.",
     "Use more ranks, smaller microbatches, or a schedule that keeps less in flight."},
    {ErrorCode::kNoDevice, "no-device", "A device that a rank needs is missing or cannot be used.",
     "Check the driver and the number of devices, or use a kernel set for the host."},
    {ErrorCode::kInvalidSchedule, "invalid-schedule",
     "A schedule, or a program made from it, breaks a rule that the verifier checks.",
     "Run `triax schedule` with the same file: it lists every violation."},
    {ErrorCode::kPluginFailed, "plugin-failed", "A plugin crashed, exited, threw an exception or did not return.",
     "Correct the plugin, or use another one."},
};

} // namespace

std::span<const ErrorCodeInfo> error_codes() {
  return kCodes;
}

std::string_view name_of(ErrorCode code) {
  for (const ErrorCodeInfo& info : kCodes)
    if (info.code == code) return info.name;
  return "unsupported"; // a plugin may have been built with a later core
}

ErrorCode error_code_of(std::string_view name) {
  for (const ErrorCodeInfo& info : kCodes)
    if (info.name == name) return info.code;
  return ErrorCode::kUnsupported;
}

Error to_error(const Refusals& refusals, std::string where) {
  std::string messages;
  for (const Refusal& refusal : refusals) messages.append(messages.empty() ? "" : "; ").append(refusal.message);
  return Error(std::move(messages), std::move(where), refusals.front().hint);
}

Error::Error(std::string message, std::string where, std::string hint)
    : std::runtime_error(sentence(message, where, hint)),
      message_(std::move(message)),
      where_(std::move(where)),
      hint_(std::move(hint)) {}

Error::~Error() = default;

void fail_requirement(const char* condition, const std::string& message, const char* file, int line) {
  throw Error(message.empty() ? text("{} does not hold", condition) : message, text("{}:{}", file, line));
}

} // namespace triax
