#include "kvartet/quality_sample.h"

namespace kvt::cli {

Json SampleToJson(const DocumentSample& sample) {
  Json methods = Json::array();
  for (const MethodSample& method : sample.methods) {
    methods.push_back({{"kl", method.kl},
                       {"same_choice", method.same_choice},
                       {"likelihood", method.likelihood},
                       {"raw", method.sizes.raw},
                       {"exempt", method.sizes.exempt},
                       {"frame", method.sizes.frame},
                       {"encode_us", method.encode_us},
                       {"decode_us", method.decode_us},
                       {"equal_prefix", method.equal_prefix}});
  }
  return {{"name", sample.name},
          {"copy", sample.copy},
          {"context", sample.context},
          {"full_likelihood", sample.full_likelihood},
          {"importance_us", sample.importance_us},
          {"methods", methods}};
}

DocumentSample SampleFromJson(const Json& json) {
  DocumentSample sample;
  json.at("name").get_to(sample.name);
  json.at("copy").get_to(sample.copy);
  json.at("context").get_to(sample.context);
  json.at("full_likelihood").get_to(sample.full_likelihood);
  json.at("importance_us").get_to(sample.importance_us);
  for (const Json& from : json.at("methods")) {
    MethodSample method;
    from.at("kl").get_to(method.kl);
    from.at("same_choice").get_to(method.same_choice);
    from.at("likelihood").get_to(method.likelihood);
    from.at("raw").get_to(method.sizes.raw);
    from.at("exempt").get_to(method.sizes.exempt);
    from.at("frame").get_to(method.sizes.frame);
    from.at("encode_us").get_to(method.encode_us);
    from.at("decode_us").get_to(method.decode_us);
    from.at("equal_prefix").get_to(method.equal_prefix);
    sample.methods.push_back(method);
  }
  return sample;
}

}  // namespace kvt::cli
