package redis

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

// The scripts, each with its keys and arguments in its first lines. They answer {code, text}.
var (
	//go:embed lua/ends.lua
	endsLua string // before acquire, append, beat, begin and apply
	//go:embed lua/acquire.lua
	acquireLua string
	//go:embed lua/beat.lua
	beatLua string
	//go:embed lua/release.lua
	releaseLua string
	//go:embed lua/begin.lua
	beginLua string
	//go:embed lua/append.lua
	appendLua string
	//go:embed lua/trim.lua
	trimLua string
	//go:embed lua/chunk.lua
	chunkLua string
	//go:embed lua/publish.lua
	publishLua string
	//go:embed lua/apply.lua
	applyLua string
	//go:embed lua/rows.lua
	rowsLua string // before marks, page and times
	//go:embed lua/marks.lua
	marksLua string
	//go:embed lua/page.lua
	pageLua string
	//go:embed lua/times.lua
	timesLua string

	acquireScript = redis.NewScript(endsLua + acquireLua)
	beatScript    = redis.NewScript(endsLua + beatLua)
	releaseScript = redis.NewScript(releaseLua)
	beginScript   = redis.NewScript(endsLua + beginLua)
	appendScript  = redis.NewScript(endsLua + appendLua)
	trimScript    = redis.NewScript(trimLua)
	chunkScript   = redis.NewScript(chunkLua)
	publishScript = redis.NewScript(publishLua)
	applyScript   = redis.NewScript(endsLua + applyLua)
	marksScript   = redis.NewScript(rowsLua + marksLua)
	pageScript    = redis.NewScript(rowsLua + pageLua)
	timesScript   = redis.NewScript(rowsLua + timesLua)
)

// Codes of the scripts' answers.
const (
	codeDone   = 1
	codeThere  = 2  // an earlier try landed
	codeFenced = -1 // text: the owner
	codeGap    = -2 // append, apply, beat; text: the stored sequence or watermark

	codeMore           = 2  // trim: not all is done
	codeHeld           = -3 // acquire; text: the owner
	codeCut            = -4 // acquire; text: the loss that an owner found
	codeShort          = -5 // acquire, apply; text: the stored sequence, and of acquire the digest
	codeVersion        = -6 // acquire; text: the store's version, "" if none is stored
	codeNotEmpty       = -3 // begin; text: the store's content
	codeBelowWatermark = -3 // publish; text: the watermark
	codeOlder          = -4 // publish; text: the newest image's sequence
	codeLate           = -3 // apply; text: the list
)
