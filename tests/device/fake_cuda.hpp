// SPDX-License-Identifier: Apache-2.0
// Fixture shared by the tests of the fake CUDA device.
//
// Threads: the test's. Ownership: memory is freed after the streams. Blocking: values() waits for its stream.
#pragma once

#include <gmock/gmock.h>

#include <cstring>
#include <future>
#include <memory>
#include <vector>

#include "support/fake_cuda_device.hpp"
#include "triax/device.hpp"

namespace triax::test {

class FakeCuda : public testing::Test {
 protected:
  TensorView place(DType dtype, const Shape& shape, MemoryKind kind = MemoryKind::device) {
    memory.push_back(device->allocate(TensorView(nullptr, dtype, shape).bytes(), kind));
    return {memory.back()->data(), dtype, shape};
  }
  template <class T>
  std::vector<T> values(const TensorView& view) {
    const TensorView staged = place(view.dtype(), view.shape(), MemoryKind::pinned);
    device->download(staged, view, *stream);
    device->wait(stream->record(), deadline_in(60));
    return {staged.as<T>(), staged.as<T>() + view.elements()};
  }
  /// Enqueues an item that runs until let_end().
  void keep_busy(Stream& busy) {
    fake_launch_stream(busy).enqueue([end = end_.get_future().share()] { end.wait(); });
  }
  void let_end() { end_.set_value(); }

  std::unique_ptr<Device> device = make_fake_cuda_device(7);
  std::vector<std::unique_ptr<Memory>> memory;
  std::unique_ptr<Stream> stream = device->make_stream("test");

 private:
  std::promise<void> end_;
};

} // namespace triax::test
