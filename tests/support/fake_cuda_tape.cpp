// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cuda_tape.hpp"

namespace triax::test::fake_cuda {

void Tape::play() const {
  std::vector<Event> events{{}}; // by mark, from 1
  for (const Entry& entry : entries_) {
    if (entry.marks > 0) {
      events.push_back(entry.lane->record());
    } else if (entry.waits > 0) {
      const Event& event = events.at(entry.waits);
      Item item;
      item.kind = Item::Kind::event;
      item.of = static_cast<Lane*>(event.state());
      item.number = event.generation();
      entry.lane->put(std::move(item));
    } else {
      entry.lane->put(entry.item);
    }
  }
}

} // namespace triax::test::fake_cuda
