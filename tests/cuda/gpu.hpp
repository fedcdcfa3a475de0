// SPDX-License-Identifier: Apache-2.0
// Fixture with a CUDA device, and environment variables. Without a GPU, the test is skipped and prints the reason.
//
// Threads: one. Ownership: owns the device. Blocking: creation of the device. Errors: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "triax/cuda/cuda_device.hpp"

namespace triax::cuda {

/// Sets an environment variable, or unsets it, until the end of its scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusals answer = available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    device = make_device({}, {});
    device->set_default_timeout(60);
    stream = device->make_stream("test");
  }

  void finish() { device->wait(stream->record(), deadline_in(60)); }

  /// Memory with the lifetime of the test.
  TensorView place(DType dtype, const Shape& shape, MemoryKind kind = MemoryKind::device) {
    memory_.push_back(device->allocate(TensorView(nullptr, dtype, shape).bytes(), kind));
    return {memory_.back()->data(), dtype, shape};
  }
  template <class T>
  TensorView place(DType dtype, const Shape& shape, const std::vector<T>& values) {
    const TensorView view = place(dtype, shape);
    std::vector<T> copy = values;
    device->upload(view, {copy.data(), dtype, shape}, *stream);
    finish();
    return view;
  }
  template <class T>
  std::vector<T> values(const TensorView& view) {
    std::vector<T> out(static_cast<std::size_t>(view.elements()));
    device->download({out.data(), view.dtype(), view.shape()}, view, *stream);
    finish();
    return out;
  }

  std::unique_ptr<Device> device; // destroyed last

 private:
  std::vector<std::unique_ptr<Memory>> memory_; // destroyed after the stream, whose work may use it

 protected:
  std::unique_ptr<Stream> stream;
};

} // namespace triax::cuda
