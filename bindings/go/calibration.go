package kvartet

import "kvartet/internal/generated/flat"

// Calibration gathers statistics of a model's KV from documents and makes a profile of them, which the codec
// "transform" needs. Experimental: this file's names may change in any release.
type Calibration struct{ ref *ref }

// CalibrationOptions: begin with DefaultCalibrationOptions.
type CalibrationOptions struct {
	GroupLayers          uint32 // layers that share a basis; 0: a third of them
	RatioMin             uint32 // lowest ratio that the profile is for, 4 to 32
	LayerBegin, LayerEnd uint32 // layers that it is for; 0 and 0: all
	HeadBegin, HeadEnd   uint32 // heads that it is for; 0 and 0: all
}

// DefaultCalibrationOptions are the library's.
func DefaultCalibrationOptions() CalibrationOptions {
	d := mustDefaults(flat.KVTF_RECORD_CALIBRATION)
	w := func(i int) uint32 { return uint32(word(d, i)) }
	return CalibrationOptions{w(flat.KVTF_CALIBRATION_GROUP_LAYERS), w(flat.KVTF_CALIBRATION_RATIO_MIN),
		w(flat.KVTF_CALIBRATION_LAYER_BEGIN), w(flat.KVTF_CALIBRATION_LAYER_END),
		w(flat.KVTF_CALIBRATION_HEAD_BEGIN), w(flat.KVTF_CALIBRATION_HEAD_END)}
}

func newCalibration(model *Model, name string, create func(model int64, text []byte) int64) (*Calibration, error) {
	r, err := newRef("calibration", []*ref{model.ref}, destroyed(flat.Kvtf_calibration_destroy),
		func(h []int64) (int64, error) {
			return call(name, func(text []byte) int64 { return create(h[0], text) })
		})
	if err != nil {
		return nil, err
	}
	return &Calibration{r}, nil
}

// NewCalibration begins a calibration; nil options are the defaults.
func NewCalibration(model *Model, options *CalibrationOptions) (*Calibration, error) {
	var packed []byte
	if o := options; o != nil {
		packed = record(int64(o.GroupLayers), int64(o.RatioMin), int64(o.LayerBegin), int64(o.LayerEnd),
			int64(o.HeadBegin), int64(o.HeadEnd))
	}
	return newCalibration(model, "calibration create", func(h int64, text []byte) int64 {
		return flat.Kvtf_calibration_create(h, packed, text)
	})
}

// RestoreCalibration continues one from what Save gave.
func RestoreCalibration(model *Model, saved []byte) (*Calibration, error) {
	return newCalibration(model, "calibration restore", func(h int64, text []byte) int64 {
		return flat.Kvtf_calibration_restore(h, saved, text)
	})
}

// Close ends the calibration.
func (c *Calibration) Close() error { return c.ref.close() }

// Add takes in tokens of one document.
func (c *Calibration) Add(v View, tokenBegin, tokens int) error {
	_, err := c.ref.on("calibration add", func(h int64, text []byte) int64 {
		return flat.Kvtf_calibration_add(h, v.record(), bytesOf(v.Bases), bytesOf(v.BlockTable), v.Memory,
			int64(tokenBegin), int64(tokens), text)
	})
	return err
}

// CalibrationInfo is what a calibration has seen.
type CalibrationInfo struct{ Documents, Tokens, Nonfinite uint64 }

// Progress copies the counts.
func (c *Calibration) Progress() (CalibrationInfo, error) {
	s, err := c.ref.onOutput("calibration progress", 8*flat.KVTF_CALIBRATION_INFO_WORDS, flat.Kvtf_calibration_progress)
	if err != nil {
		return CalibrationInfo{}, err
	}
	return CalibrationInfo{uint64(word(s, flat.KVTF_CALIBRATION_INFO_DOCUMENTS)),
		uint64(word(s, flat.KVTF_CALIBRATION_INFO_TOKENS)), uint64(word(s, flat.KVTF_CALIBRATION_INFO_NONFINITE))}, nil
}

// profileGuess is room for the profile of a small model, so that most need one call.
const profileGuess = 1 << 18

// Save copies the state out, to go on later with the same result.
func (c *Calibration) Save() ([]byte, error) {
	return c.ref.onOutput("calibration save", profileGuess, flat.Kvtf_calibration_save)
}

// Finish makes the profile of all that was added; it may compute for seconds.
func (c *Calibration) Finish() ([]byte, error) {
	return c.ref.onOutput("calibration finish", profileGuess, flat.Kvtf_calibration_finish)
}

// ProfileFingerprint checks a profile whole and names it.
func ProfileFingerprint(profile []byte) ([]byte, error) {
	return output("profile fingerprint", flat.KVTF_FINGERPRINT_BYTES, func(buf, text []byte) int64 {
		return flat.Kvtf_profile_fingerprint(profile, buf, text)
	})
}

// DescribeProfile gives a profile as JSON.
func DescribeProfile(profile []byte) (string, error) {
	text, err := output("profile describe", 4096, func(buf, text []byte) int64 {
		return flat.Kvtf_profile_describe(profile, buf, text)
	})
	return string(text), err
}

// ProfileKey is where caches and peers keep the profile of a fingerprint.
func ProfileKey(fingerprint []byte) (Key, error) {
	var key Key
	_, err := call("profile key", func(text []byte) int64 {
		return flat.Kvtf_profile_key(fingerprint, key[:], text)
	})
	return key, err
}

// WrapProfile makes a frame of a profile, to put into a cache or to serve.
func WrapProfile(profile []byte, digest Digest) ([]byte, error) {
	return output("profile wrap", len(profile)+4096, func(buf, text []byte) int64 {
		return flat.Kvtf_profile_wrap(profile, digestBytes(digest), buf, text)
	})
}

// UnwrapProfile checks such a frame whole and copies the profile out.
func UnwrapProfile(frame []byte) ([]byte, error) {
	return output("profile unwrap", len(frame), func(buf, text []byte) int64 {
		return flat.Kvtf_profile_unwrap(frame, buf, text)
	})
}
