// One sentence of advice: which axis to touch first, from what a meter has summed. A pure function.
#ifndef KVARTET_LIB_MEASURE_ADVICE_H_
#define KVARTET_LIB_MEASURE_ADVICE_H_

#include <string>

#include "measure/meter.h"

namespace kvt {

// In this order: too little data; queue (location); moving the cache (size, or location where a codec does
// not pay or computing again is faster); waiting for the full cache (verification); prefill (ownership);
// nothing. A verdict on raw against lossy is part of the sentence whenever both were measured.
std::string Advise(const MeterSums& sums);

}  // namespace kvt

#endif  // KVARTET_LIB_MEASURE_ADVICE_H_
