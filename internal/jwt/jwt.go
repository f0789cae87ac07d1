// Package jwt signs and verifies tokens for Slurm's auth/jwt.
package jwt

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// MinKey is the minimum key size in bytes. Slurm accepts less, but a short key can be guessed.
const MinKey = 16

// claims are the claims that Slurm reads: the user, and the times of issue and expiry.
type claims struct {
	User string `json:"sun"`
	jwt.RegisteredClaims
}

// A Token is a signed token and its claims. Its text is a secret.
type Token struct {
	Text    string
	User    string
	Issued  time.Time
	Expires time.Time
}

// Sign returns a token signed with an HS256 key. Its times are whole seconds.
func Sign(key []byte, user string, now time.Time, lifetime time.Duration) (Token, error) {
	if len(key) < MinKey {
		return Token{}, fmt.Errorf("the HS256 key has %d bytes; use one of at least %d, better 32 random bytes",
			len(key), MinKey)
	}
	token := Token{User: user, Issued: now.Truncate(time.Second), Expires: now.Add(lifetime).Truncate(time.Second)}
	var err error
	token.Text, err = jwt.NewWithClaims(jwt.SigningMethodHS256, claims{user, jwt.RegisteredClaims{
		IssuedAt: jwt.NewNumericDate(token.Issued), ExpiresAt: jwt.NewNumericDate(token.Expires),
	}}).SignedString(key)
	return token, err
}

// Parse parses a token that was signed with the key, even if it has expired. Its errors never contain the token.
func Parse(key []byte, text string) (Token, error) {
	var found claims
	_, err := jwt.ParseWithClaims(text, &found, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Token{}, errors.New("the token was signed with another key")
	case err != nil:
		return Token{}, errors.New("not a Slurm token")
	case found.ExpiresAt == nil || found.IssuedAt == nil:
		return Token{}, errors.New("the token has no iat or exp")
	}
	return Token{Text: text, User: found.User, Issued: found.IssuedAt.Time, Expires: found.ExpiresAt.Time}, nil
}
